#include "io/whole_file.hpp"

#include <dlfcn.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <functional>
#include <map>

#include "catch.hpp"
#include "sconce/io/checkpoint.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/io/torch_file.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::io::WholeFile;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::TempDir;

namespace {

// How many more of the calls below succeed; negative: all.
int calls_left = -1;

// Whether this call is to fail, as on a broken disk.
bool fails() {
  if (calls_left < 0) return false;
  if (calls_left > 0) return --calls_left, false;
  errno = EIO;
  return true;
}

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The linker takes these for the library's calls. A write that succeeds is a short one, too.
extern "C" ssize_t write(int fd, const void* data, size_t size) {
  if (fails()) return -1;
  return next<decltype(write)>("write")(fd, data,
                                        calls_left < 0 ? size : std::min<size_t>(size, 7));
}
extern "C" int fsync(int fd) {
  return fails() ? -1 : next<decltype(fsync)>("fsync")(fd);
}
extern "C" int rename(const char* from, const char* to) noexcept {
  return fails() ? -1 : next<decltype(rename)>("rename")(from, to);
}

namespace {

namespace fs = std::filesystem;

void save(const fs::path& file, const std::string& text) {
  WholeFile whole(file, "save");
  whole.write(text.data(), text.size());
  whole.finish();
}

std::ptrdiff_t count(const TempDir& folder) {
  return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator());
}

}  // namespace

TEST_CASE("a file that is not finished leaves the earlier one and nothing beside") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  {
    WholeFile whole(file, "save");
    whole.write("after", 5);
    CHECK(contents(file) == "before");
    CHECK(count(folder) == 2);
  }
  CHECK(contents(file) == "before");
  CHECK(count(folder) == 1);
  save(file, "after");
  CHECK(contents(file) == "after");
  CHECK(count(folder) == 1);
}

TEST_CASE("a file that is replaced keeps its permissions, and a link stays one") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(file, folder.path() / "link");
  save(folder.path() / "link", "after");
  CHECK(fs::is_symlink(folder.path() / "link"));
  CHECK(contents(file) == "after");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("what a killed writer left is removed by the next, and what another writes is not") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  folder.write("file.4711-0.part", "left");
  folder.write("other.4711-0.part", "not ours");
  WholeFile one(file, "save");
  WholeFile two(file, "save");
  CHECK_FALSE(fs::exists(folder.path() / "file.4711-0.part"));
  CHECK(fs::exists(folder.path() / "other.4711-0.part"));
  one.write("one", 3);
  two.write("two", 3);
  one.finish();
  two.finish();
  CHECK(contents(file) == "two");
  CHECK(count(folder) == 2);
}

namespace {

sconce::io::StateDict state_of(int64_t version) {
  sconce::io::StateDict state;
  state.insert("x", torch::full({10}, version));
  return state;
}

// A way to save a version of something in a folder, and to read which one is there.
struct Way {
  std::function<void(const fs::path&, int64_t)> save;
  std::function<int64_t(const fs::path&)> version;
};

const std::map<std::string, Way> ways = {
    {"safetensors",
     {[](const fs::path& folder, int64_t version) {
        sconce::io::save_safetensors(folder / "file", state_of(version));
      },
      [](const fs::path& folder) {
        return sconce::io::load_safetensors(folder / "file")["x"].max().item<int64_t>();
      }}},
    {"torch",
     {[](const fs::path& folder, int64_t version) {
        sconce::io::save_torch(folder / "file", version);
      },
      [](const fs::path& folder) { return sconce::io::load_torch(folder / "file").toInt(); }}},
    {"checkpoint",
     {[](const fs::path& folder, int64_t version) {
        sconce::io::Checkpoint checkpoint(folder, {.resume = true});
        checkpoint.load({});
        checkpoint.save({}, {.epoch = version}, static_cast<double>(version));
      },
      [](const fs::path& folder) {
        return sconce::io::Checkpoint(folder, {.resume = true}).load({})->epoch;
      }}}};

}  // namespace

TEST_CASE("where any write, sync or rename fails, the file is the earlier or the later one",
          "[alone]") {
  for (const auto& item : ways) {
    const auto& name = item.first;
    const Way& way = item.second;
    const TempDir folder;
    int failures = 0;
    for (bool done = false; !done; ++failures) {
      fs::remove_all(folder.path());
      fs::create_directory(folder.path());
      way.save(folder.path(), 1);
      const auto files = count(folder);
      calls_left = failures;
      const std::string error = error_of([&] { way.save(folder.path(), 2); });
      calls_left = -1;
      INFO(name << " after " << failures << " calls: " << error);
      done = error == "nothing was thrown";
      const auto version = way.version(folder.path());
      CHECK((version == 2 || (version == 1 && !done)));
      // Where the link to the best could not be renamed, the next save removes it.
      CHECK(count(folder) <= files + (version == 2 && name == "checkpoint" ? 2 : 0));
      if (done) continue;
      CHECK_THAT(error, ContainsSubstring(folder.path().string()) && ContainsSubstring("cannot ") &&
                            ContainsSubstring("Input/output error"));
    }
    CHECK(failures - 1 > 3 + 3);  // a few short writes; a sync, a rename, a sync of the folder
  }
}

TEST_CASE("a limit on the size of files leaves the earlier file and names the cause", "[alone]") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  struct rlimit limit = {};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  struct rlimit small = {1000, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = error_of([&] { save(file, std::string(5000, 'x')); });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(error, ContainsSubstring(file.string() + ": cannot write it: File too large"));
  CHECK(contents(file) == "before");
  CHECK(count(folder) == 1);
}

TEST_CASE("a full disk leaves the earlier file and names the cause", "[alone]") {
  const TempDir folder;
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    SKIP("needs the right to mount a file system: " << std::strerror(errno));
  }
  const auto file = folder.write("file", "before");
  const std::string error = error_of([&] { save(file, std::string(100'000, 'x')); });
  const std::string left = contents(file);
  const auto files = count(folder);
  umount(folder.path().c_str());
  CHECK_THAT(error,
             ContainsSubstring(file.string() + ": cannot write it: No space left on device"));
  CHECK(left == "before");
  CHECK(files == 1);
}

TEST_CASE("errors name the path and the cause") {
  const TempDir folder;
  CHECK_THROWS_WITH(save(folder.path() / "none" / "file", ""),
                    ContainsSubstring("save: ") && ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(save(folder.path(), ""), ContainsSubstring("expected a regular file"));
}
