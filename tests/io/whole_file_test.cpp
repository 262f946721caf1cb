#include "sconce/io/whole_file.hpp"

#include <dlfcn.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>

#include "catch.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/training/checkpoint.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::io::WholeFile;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::TempDir;

namespace {

// How many more of the calls below succeed. Negative: all.
int calls_left = -1;

// Whether this call must fail, as on a broken disk.
bool fails() {
  if (calls_left < 0) return false;
  if (calls_left > 0) return --calls_left, false;
  errno = EIO;
  return true;
}

// What fsync fails with for a folder. 0: it succeeds.
int folder_error = 0;

bool is_folder(int fd) {
  struct stat status = {};
  return ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

// Whether the file system has symbolic links.
bool has_links = true;

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The linker uses these instead of the C library's functions. A successful write may be a short
// one.
extern "C" ssize_t write(int fd, const void* data, size_t size) {
  if (fails()) return -1;
  return next<decltype(write)>("write")(fd, data,
                                        calls_left < 0 ? size : std::min<size_t>(size, 7));
}
extern "C" int fsync(int fd) {
  if (folder_error != 0 && is_folder(fd)) return errno = folder_error, -1;
  return fails() ? -1 : next<decltype(fsync)>("fsync")(fd);
}
extern "C" int rename(const char* from, const char* to) noexcept {
  return fails() ? -1 : next<decltype(rename)>("rename")(from, to);
}
extern "C" int symlink(const char* target, const char* link) noexcept {
  if (has_links) return next<decltype(symlink)>("symlink")(target, link);
  errno = EPERM;
  return -1;
}

namespace {

namespace fs = std::filesystem;

void save(const fs::path& file, const std::string& text) {
  sconce::io::write_whole(file, text, "save");
}

// Drops root's rights for its lifetime. Skips the test if they cannot be dropped.
class AsNobody {
 public:
  AsNobody() {
    if (::getuid() != 0) return;
    if (::setegid(nobody) == 0 && ::seteuid(nobody) == 0) return;
    const int error = errno;
    become_root();
    SKIP("needs permission to become another user: " << std::strerror(error));
  }
  ~AsNobody() {
    if (::getuid() == 0) become_root();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

  static constexpr uid_t nobody = 65534;

 private:
  static void become_root() {
    if (::seteuid(0) != 0 || ::setegid(0) != 0) std::abort();
  }
};

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

TEST_CASE("a link to what is not there yet stays one, and the file comes where it leads") {
  const TempDir folder;
  const auto& path = folder.path();
  fs::create_directory(path / "inner");
  fs::create_symlink("inner/second", path / "first");
  fs::create_symlink("../file", path / "inner" / "second");
  save(path / "first", "new");
  CHECK(fs::is_symlink(path / "first"));
  CHECK(fs::is_symlink(path / "inner" / "second"));
  CHECK(contents(path / "file") == "new");
  CHECK(count(folder) == 3);
  fs::create_symlink("loop", path / "loop");
  CHECK_THROWS_WITH(save(path / "loop", "new"),
                    ContainsSubstring("loop: expected a link to a file"));
  CHECK(fs::is_symlink(path / "loop"));
}

TEST_CASE("a file that its user may not write is refused and stays", "[alone]") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  fs::permissions(file, fs::perms::owner_read | fs::perms::others_read);
  fs::permissions(folder.path(), fs::perms::all);
  const AsNobody nobody;
  CHECK_THROWS_WITH(save(file, "after"),
                    ContainsSubstring(file.string() + ": cannot write it: Permission denied"));
  CHECK(contents(file) == "before");
  CHECK(count(folder) == 1);
  save(folder.path() / "other", "new");
  CHECK(contents(folder.path() / "other") == "new");
}

TEST_CASE("a file of another user's stays that user's when root replaces it", "[alone]") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  if (::chown(file.c_str(), AsNobody::nobody, AsNobody::nobody) != 0 ||
      ::chmod(file.c_str(), 04640) != 0) {
    SKIP("needs permission to change the owner of a file: " << std::strerror(errno));
  }
  save(file, "after");
  struct stat now = {};
  REQUIRE(::stat(file.c_str(), &now) == 0);
  CHECK(contents(file) == "after");
  CHECK(now.st_uid == AsNobody::nobody);
  CHECK(now.st_gid == AsNobody::nobody);
  CHECK((now.st_mode & 07777) == 04640);
}

TEST_CASE("a name may be as long as the file system takes") {
  const TempDir folder;
  const std::string common(254, 'x');
  folder.write(std::string(100, 'x') + ".4711-0.part", "left by a killed writer");
  WholeFile one(folder.path() / (common + "1"), "save");
  WholeFile two(folder.path() / (common + "2"), "save");
  one.write("one", 3);
  two.write("two", 3);
  one.finish();
  two.finish();
  CHECK(contents(folder.path() / (common + "1")) == "one");
  CHECK(contents(folder.path() / (common + "2")) == "two");
  CHECK(count(folder) == 2);
}

TEST_CASE("what a killed writer left is removed by the next, and what another writes is not") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  folder.write("file.4711-0.part", "left");
  folder.write("other.4711-0.part", "not ours");
  const std::vector<std::string> others = {"file.old.part", "file.00.part", "file.1-.part",
                                           "file.-1.part",  "file.-.part",  "file.2026-01-31.part"};
  for (const auto& other : others) folder.write(other, "no writer's");
  WholeFile one(file, "save");
  WholeFile two(file, "save");
  CHECK_FALSE(fs::exists(folder.path() / "file.4711-0.part"));
  CHECK(fs::exists(folder.path() / "other.4711-0.part"));
  one.write("one", 3);
  two.write("two", 3);
  one.finish();
  two.finish();
  CHECK(contents(file) == "two");
  for (const auto& other : others) {
    INFO(other);
    CHECK(fs::exists(folder.path() / other));
  }
  CHECK(count(folder) == 2 + std::ssize(others));
}

namespace {

sconce::StateDict state_of(int64_t version) {
  sconce::StateDict state;
  state.insert("x", torch::full({10}, version));
  return state;
}

// A way to save a version of some state in a folder, and to read which version is there.
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
        sconce::Checkpoint checkpoint(folder, {.resume = true});
        checkpoint.load({});
        checkpoint.save({}, {.epoch = version}, static_cast<double>(version));
      },
      [](const fs::path& folder) {
        return sconce::Checkpoint(folder, {.resume = true}).load({})->epoch;
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
      // If the link to the best checkpoint could not be renamed, the next save removes it.
      CHECK(count(folder) <= files + (version == 2 && name == "checkpoint" ? 2 : 0));
      if (done) continue;
      CHECK_THAT(error, ContainsSubstring(folder.path().string()) && ContainsSubstring("cannot ") &&
                            ContainsSubstring("Input/output error"));
    }
    CHECK(failures - 1 > 3 + 3);  // short writes; a sync, a rename, a sync of the folder
  }
}

TEST_CASE("where a file system cannot sync folders, files are saved, and a broken disk is told") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  const auto save_with = [&](int error, const std::string& text) {
    folder_error = error;
    const std::string message = error_of([&] { save(file, text); });
    folder_error = 0;
    return message;
  };
  for (const int error : {EINVAL, EBADF, ENOSYS, EOPNOTSUPP}) {
    INFO(std::strerror(error));
    CHECK(save_with(error, std::to_string(error)) == "nothing was thrown");
    CHECK(contents(file) == std::to_string(error));
  }
  for (const int error : {EIO, ENOSPC}) {
    CHECK_THAT(
        save_with(error, ""),
        ContainsSubstring(file.string() + ": cannot sync its folder: " + std::strerror(error)));
  }
}

TEST_CASE("in a folder that may be written but not read files are saved", "[alone]") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  fs::permissions(folder.path(), fs::perms::all & ~fs::perms::others_read);
  const AsNobody nobody;
  save(file, "new");
  CHECK(contents(file) == "new");
}

TEST_CASE("where there are no links best.pt is a copy of the best checkpoint") {
  const TempDir folder;
  const auto best = folder.path() / "best.pt";
  sconce::Checkpoint checkpoint(folder.path());
  has_links = false;
  const std::string error = error_of([&] {
    checkpoint.save({}, {.epoch = 1}, 0.5);
    checkpoint.save({}, {.epoch = 2}, 0.25);
  });
  const std::string first = contents(best);
  const std::string error_of_better = error_of([&] { checkpoint.save({}, {.epoch = 3}, 0.75); });
  has_links = true;
  CHECK(error == "nothing was thrown");
  CHECK(error_of_better == "nothing was thrown");
  CHECK_FALSE(fs::is_symlink(best));
  CHECK_FALSE(first.empty());
  CHECK(first != contents(best));
  CHECK(contents(best) == contents(checkpoint.latest()));
  CHECK(sconce::io::load_torch(best).toGenericDict().at("epoch").toInt() == 3);
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    CHECK(entry.path().extension() != ".part");
  }
  checkpoint.save({}, {.epoch = 4}, 0.875);
  CHECK(fs::read_symlink(best) == checkpoint.latest().filename());
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
    SKIP("needs permission to mount a file system: " << std::strerror(errno));
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

TEST_CASE("a path that cannot be a file's is refused before anything is written") {
  const TempDir folder;
  const auto begin = [](const fs::path& path) {
    return error_of([&] { WholeFile(path, "save"); });
  };
  CHECK(begin("") == "save: expected the path of a file, got ''");
  const auto inner = folder.path() / "inner" / "";
  CHECK(begin(inner) == "save: expected the path of a file, got '" + inner.string() + "'");
  CHECK_THAT(begin(folder.path() / std::string(256, 'x')),
             ContainsSubstring(": cannot make it: File name too long"));
  CHECK(count(folder) == 0);
}
