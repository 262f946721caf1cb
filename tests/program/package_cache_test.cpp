#include "program/package_cache.hpp"

#include <ATen/Version.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>

#include "catch.hpp"
#include "program/python_package.hpp"
#include "sconce/cuda/device_properties.hpp"
#include "support/error_of.hpp"
#include "support/require_gpu.hpp"
#include "support/temp_dir.hpp"
#include "support/wait_until.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::program::detail::CompileFolder;
using sconce::program::detail::CompileLock;
using sconce::program::detail::Graph;
using sconce::program::detail::package_target;
using sconce::program::detail::PackageCache;
using sconce::program::detail::PackageTarget;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::names_in;
using sconce::test::TempDir;
using sconce::test::wait_until;

namespace {

namespace fs = std::filesystem;

const std::string cache_key = "0123abcd";
const PackageTarget some_target = {
    .torch = "2.15.0", .cpu = "EPYC, AVX2", .device = "cpu", .threads = 3, .compiler = "89ab"};

// Writes a script that replaces Python. The script is called with the arguments "-m
// sconce_cpp.compile_step <program> <package> --threads <n>".
fs::path fake_python(const TempDir& folder, const std::string& script) {
  const auto path = folder.write("python", "#!/bin/sh\n" + script + "\n");
  fs::permissions(path, fs::perms::owner_all);
  return path;
}

const std::string writes_package = "echo compiled > \"$4\"";

// Waits up to a minute for the file.
std::string waits_for(const fs::path& file) {
  return "for i in $(seq 3000); do [ -e '" + file.string() + "' ] && break; sleep 0.02; done\n";
}

size_t lines_in(const fs::path& file) {
  const auto text = contents(file);
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Compiles a program and returns the error.
std::string compile_error(const PackageCache& cache, const fs::path& python,
                          const PackageTarget& target = some_target, const Graph& program = {}) {
  const auto compilation = cache.compile(cache_key, target, program, python);
  compilation->wait();
  return compilation->error();
}

// A temporary folder that contains a cache with one package.
struct FilledCache {
  TempDir folder = TempDir();
  fs::path python = fake_python(folder, writes_package);
  PackageCache cache = PackageCache(folder.path() / "cache");
  fs::path entry = cache.folder() / cache_key;

  FilledCache() { REQUIRE(compile_error(cache, python).empty()); }
};

struct stat status_at(const fs::path& path) {
  struct stat status = {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

mode_t mode_at(const fs::path& path) {
  return status_at(path).st_mode & 07777;
}

std::string cache_error(const fs::path& folder) {
  return error_of([&] { PackageCache cache(folder); });
}

// Returns whether the process exists and is still running, that is, not a zombie.
bool is_running(const std::string& id) {
  const auto status = contents("/proc/" + id + "/stat");
  const auto name_end = status.rfind(')');
  return name_end != status.npos && status.at(name_end + 2) != 'Z';
}

std::string first_line(const fs::path& file) {
  const auto text = contents(file);
  return text.substr(0, text.find('\n'));
}

// Sets or removes an environment variable for the lifetime of the object.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_ = {};
};

}  // namespace

TEST_CASE("a cache finds packages compiled by itself or by another cache in the same folder") {
  const TempDir folder;
  const PackageCache cache(folder.path() / "cache");
  const auto before = cache.find(cache_key, some_target);
  CHECK(!before.package);
  CHECK(before.ignored.empty());
  CHECK(compile_error(cache, fake_python(folder, writes_package)).empty());
  for (const auto& searched : {cache, PackageCache(folder.path() / "cache")}) {
    const auto found = searched.find(cache_key, some_target);
    CHECK(found.ignored.empty());
    REQUIRE(found.package);
    CHECK(contents(*found.package) == "compiled\n");
  }
  CHECK(names_in(cache.folder()) ==
        std::vector<std::string>{cache_key, cache_key + ".lock", "inductor"});
}

TEST_CASE("a package that is already in the cache is not compiled again") {
  const FilledCache filled;
  CHECK(compile_error(filled.cache, fake_python(filled.folder, "exit 1")).empty());
}

TEST_CASE(
    "a compilation's Python process receives the program, the module, and the caches, and inherits "
    "no open files") {
  const TempDir folder;
  const PackageCache cache(folder.path() / "cache");
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int inherited = ::fcntl(null, F_DUPFD, 100);
  ::close(null);
  const auto python = fake_python(
      folder,
      "echo \"$@\" > package.pt2\n"
      "[ -s program.safetensors ] && [ -s sconce_cpp/__init__.py ] && echo files >> package.pt2\n"
      "[ \"$PYTHONPATH\" = \"$PWD\" ] && echo \"$PYTHONDONTWRITEBYTECODE\" >> package.pt2\n"
      "echo \"$TORCHINDUCTOR_CACHE_DIR $HELLO\" >> package.pt2\n"
      "[ ! -e /proc/$$/fd/" +
          std::to_string(inherited) +
          " ] && echo no open file >> package.pt2\n"
          "[ -z \"$(cat)\" ] && echo no input >> package.pt2\n"
          "[ \"$(cut -d' ' -f5 /proc/$$/stat)\" = $$ ] && echo own group >> package.pt2");
  const Variable other("HELLO", "hello");
  const auto error = compile_error(cache, python);
  ::close(inherited);
  CHECK(error.empty());
  CHECK(contents(cache.folder() / cache_key / "package.pt2") ==
        "-m sconce_cpp.compile_step program.safetensors package.pt2 --threads 3\n"
        "files\n1\n" +
            (cache.folder() / "inductor").string() +
            " hello\n"
            "no open file\nno input\nown group\n");
}

TEST_CASE("the library contains an exact copy of the Python package in apps/export") {
  const auto folder = fs::path(SCONCE_TESTS_DIR).parent_path() / "apps/export/sconce_cpp";
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files += entry.path().extension() == ".py";
  }
  CHECK(files >= 7);
  CHECK(sconce::program::detail::python_package().size() == files);
  for (const auto& file : sconce::program::detail::python_package()) {
    INFO(file.name);
    CHECK(file.text == contents(folder / file.name));
  }
}

TEST_CASE("a package for a different machine or from a different compiler is ignored and rebuilt") {
  FilledCache filled;
  const auto with = [](const std::function<void(PackageTarget&)>& change) {
    auto target = some_target;
    change(target);
    return target;
  };
  const std::vector<std::pair<PackageTarget, std::string>> others = {
      {with([](auto& target) { target.torch = "2.11.0"; }),
       "expected a package for LibTorch 2.11.0, found one for 2.15.0"},
      {with([](auto& target) { target.cpu = "Xeon, AVX512"; }),
       "expected a package for the CPU Xeon, AVX512, found one for EPYC, AVX2"},
      {with([](auto& target) { target.device = "H100"; }),
       "expected a package for the device H100, found one for cpu"},
      {with([](auto& target) { target.threads = 1; }),
       "expected a package for 1 thread, found one for 3"},
      {with([](auto& target) { target.compiler = "cdef"; }),
       "expected a package built by the compiler cdef, found one built by 89ab"}};
  for (const auto& [target, reason] : others) {
    const auto found = filled.cache.find(cache_key, target);
    CHECK(!found.package);
    CHECK(found.ignored == (filled.entry / "package.pt2").string() + ": " + reason);
    const auto python = fake_python(filled.folder, "echo rebuilt > \"$4\"");
    CHECK(compile_error(filled.cache, python, target).empty());
    REQUIRE(filled.cache.find(cache_key, target).package);
    CHECK(contents(filled.entry / "package.pt2") == "rebuilt\n");
    CHECK(!filled.cache.find(cache_key, some_target).package);
    REQUIRE(compile_error(filled.cache, filled.python).empty());
  }
}

TEST_CASE("a damaged package or a package that other users can write to is ignored and rebuilt") {
  FilledCache filled;
  const auto package = filled.entry / "package.pt2", about = filled.entry / "about.json";
  const auto write = [&](const fs::path& file, const std::string& text) {
    filled.folder.write(fs::relative(file, filled.folder.path()).string(), text);
  };
  const std::vector<std::pair<std::function<void()>, std::string>> changes = {
      {[&] { write(package, "compile"); }, "expected 9 bytes, found 7; the file is damaged"},
      {[&] { write(package, "Compiled\n"); }, "expected the CRC-32"},
      {[&] { write(about, "{\"torch\": "); }, "about.json: expected a JSON object"},
      {[&] { write(about, "{\"torch\": 2}"); }, "type must be string"},
      {[&] { write(about, "{}"); }, "key 'torch' not found"},
      {[&] { fs::remove(about); }, "about.json: cannot open it: No such file"},
      {[&] { ::chmod(package.c_str(), 0620); },
       "found the mode 0620; to change the mode: chmod go-w '" + package.string() + "'"},
      {[&] { fs::remove(package), fs::create_symlink("/dev/null", package); },
       "expected a regular file, found a link"}};
  for (const auto& [change, reason] : changes) {
    change();
    const auto found = filled.cache.find(cache_key, some_target);
    CHECK(!found.package);
    CHECK_THAT(found.ignored, ContainsSubstring(reason));
    CHECK(compile_error(filled.cache, filled.python).empty());
    CHECK(filled.cache.find(cache_key, some_target).package == package);
  }
}

TEST_CASE("a package is ignored if another user owns the package or can write to its folder",
          "[alone]") {
  const FilledCache filled;
  const auto ignored = [&] {
    const auto found = filled.cache.find(cache_key, some_target);
    CHECK(!found.package);
    return found.ignored;
  };
  fs::permissions(filled.entry, fs::perms::group_write, fs::perm_options::add);
  CHECK_THAT(ignored(),
             StartsWith(filled.entry.string() + ": expected a folder that only its owner"));
  CHECK_THAT(compile_error(filled.cache, filled.python),
             ContainsSubstring("chmod go-w '" + filled.entry.string() + "'"));
  fs::permissions(filled.entry, fs::perms::group_write, fs::perm_options::remove);
  const auto package = filled.entry / "package.pt2";
  if (::chown(package.c_str(), 65534, 65534) != 0) {
    SKIP("needs permission to change the owner of a file: " << std::strerror(errno));
  }
  CHECK_THAT(ignored(), ContainsSubstring(": expected the owner to be user 0") &&
                            ContainsSubstring("found user 65534"));
}

TEST_CASE(
    "an Inductor cache that is a symbolic link or is writable by other users causes an error") {
  const TempDir folder;
  const PackageCache cache(folder.path() / "cache");
  const auto inductor = cache.folder() / "inductor", started = folder.path() / "started";
  const auto python = fake_python(folder, "touch '" + started.string() + "'\n" + writes_package);
  fs::create_directory(inductor);
  REQUIRE(::chmod(inductor.c_str(), 0770) == 0);
  CHECK_THAT(
      compile_error(cache, python),
      StartsWith(inductor.string() + ": expected a folder that only its owner can write to"));
  fs::remove(inductor);
  fs::create_directory_symlink(folder.path(), inductor);
  CHECK(compile_error(cache, python) == inductor.string() + ": expected a folder, found a link");
  CHECK(!fs::exists(started));
}

TEST_CASE(
    "a cache creates its folder and any missing parent folders with access for the current user "
    "only") {
  const TempDir folder;
  const auto umask_before = ::umask(0);
  const PackageCache cache(folder.path() / "a" / "b" / "");
  const auto python = fake_python(folder, writes_package);
  const auto error = compile_error(cache, python);
  ::umask(umask_before);
  CHECK(error.empty());
  CHECK(cache.folder() == fs::canonical(folder.path() / "a" / "b"));
  for (const fs::path made : {"a", "a/b", "a/b/inductor", "a/b/0123abcd"}) {
    CHECK(mode_at(folder.path() / made) == 0700);
  }
  CHECK(mode_at(cache.folder() / cache_key / "package.pt2") == 0600);
  CHECK(cache.find(cache_key, some_target).package);
}

TEST_CASE(
    "the default cache folder is sconce/steps under XDG_CACHE_HOME, or under ~/.cache if "
    "XDG_CACHE_HOME is not an absolute path") {
  const TempDir folder;
  const auto path = fs::canonical(folder.path());
  const Variable home("HOME", path.c_str());
  {
    const Variable variable("XDG_CACHE_HOME", (path / "xdg").c_str());
    CHECK(PackageCache("").folder() == path / "xdg/sconce/steps");
  }
  for (const char* none : {static_cast<const char*>(nullptr), "relative", ""}) {
    const Variable variable("XDG_CACHE_HOME", none);
    CHECK(PackageCache("").folder() == path / ".cache/sconce/steps");
    const Variable no_home("HOME", nullptr);
    CHECK_THAT(cache_error(""),
               ContainsSubstring("expected an absolute path in XDG_CACHE_HOME or HOME") &&
                   ContainsSubstring("export XDG_CACHE_HOME="));
  }
}

TEST_CASE(
    "PackageCache rejects a group-writable or world-writable folder, and the error shows the "
    "command that fixes it") {
  const TempDir folder;
  const auto path = folder.path().string();
  for (const mode_t mode : {0770, 0720, 0707, 01777}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK_THAT(cache_error(path),
               StartsWith("sconce::program::PackageCache: " + path +
                          ": expected a folder that only its owner can write to (packages contain "
                          "machine code), found the mode ") &&
                   ContainsSubstring("; to change the mode: chmod go-w '" + path + "'"));
  }
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  CHECK(PackageCache(path).folder() == fs::canonical(path));
}

TEST_CASE("PackageCache rejects a folder that belongs to another user", "[alone]") {
  const TempDir folder;
  if (::chown(folder.path().c_str(), 65534, 65534) != 0) {
    SKIP("needs permission to change the owner of a folder: " << std::strerror(errno));
  }
  CHECK_THAT(cache_error(folder.path()),
             ContainsSubstring("expected the owner to be user 0") &&
                 ContainsSubstring("found user 65534; to change the owner: sudo chown 0 '" +
                                   folder.path().string() + "'"));
}

TEST_CASE("PackageCache rejects a path that is not a folder") {
  const TempDir folder;
  const auto file = folder.write("file", "");
  CHECK_THAT(cache_error(file),
             StartsWith("sconce::program::PackageCache: " + file.string() +
                        ": expected a folder, found a regular file; to delete the file: rm '" +
                        file.string() + "'"));
  CHECK_THAT(cache_error(file / "below"), ContainsSubstring(": cannot create the folder: Not a"));
  CHECK_THAT(cache_error(std::string("a\0b", 3)), ContainsSubstring("without NUL bytes"));
}

TEST_CASE(
    "if two compilations have the same key, one starts Python and the other waits for the "
    "package") {
  const TempDir folder;
  const auto starts = folder.path() / "starts", go = folder.path() / "go";
  const auto python = fake_python(
      folder, "echo start >> '" + starts.string() + "'\n" + waits_for(go) + writes_package);
  const PackageCache one(folder.path() / "cache"), two(folder.path() / "cache");
  const auto first = one.compile(cache_key, some_target, {}, python);
  const auto second = two.compile(cache_key, some_target, {}, python);
  const auto other = two.compile("other", some_target, {}, python);
  wait_until([&] { return lines_in(starts) == 2; });
  CHECK(!first->is_over());
  CHECK(!second->is_over());
  folder.write("go", "");
  second->wait();
  CHECK(second->error().empty());
  CHECK(two.find(cache_key, some_target).package);
  first->wait();
  other->wait();
  CHECK(first->error().empty());
  CHECK(lines_in(starts) == 2);
}

TEST_CASE("a waiting compilation starts Python if the first compilation fails") {
  const TempDir folder;
  const auto started = folder.path() / "started", go = folder.path() / "go";
  const auto fails =
      fake_python(folder, "touch '" + started.string() + "'\n" + waits_for(go) + "exit 3");
  const PackageCache cache(folder.path() / "cache");
  const auto first = cache.compile(cache_key, some_target, {}, fails);
  wait_until([&] { return fs::exists(started); });
  const TempDir of_second;
  const auto second =
      cache.compile(cache_key, some_target, {}, fake_python(of_second, writes_package));
  folder.write("go", "");
  first->wait();
  CHECK(first->error() == "exit code 3");
  second->wait();
  CHECK(second->error().empty());
  CHECK(cache.find(cache_key, some_target).package);
}

TEST_CASE(
    "when the compiling process is killed, a waiting process compiles the package and cleans up") {
  const TempDir folder;
  const PackageCache cache(folder.path() / "cache");
  const pid_t holder = ::fork();
  REQUIRE(holder >= 0);
  if (holder == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const CompileLock lock(cache.folder() / (cache_key + ".lock"));
    const CompileFolder in_use(cache.folder(), cache_key);
    folder.write("holder", in_use.path().string() + "\n");
    while (true) ::pause();
  }
  wait_until([&] { return lines_in(folder.path() / "holder") == 1; });
  const fs::path abandoned = first_line(folder.path() / "holder");
  const auto waiting =
      cache.compile(cache_key, some_target, {}, fake_python(folder, writes_package));
  CHECK(fs::exists(abandoned));
  CHECK(!waiting->is_over());
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  waiting->wait();
  CHECK(waiting->error().empty());
  CHECK(cache.find(cache_key, some_target).package);
  CHECK(!fs::exists(abandoned));
}

TEST_CASE("a killed Python process leaves neither a package nor temporary files") {
  const TempDir folder;
  const PackageCache cache(folder.path() / "cache");
  CHECK(compile_error(cache, fake_python(folder, "printf half > \"$4\"; kill -9 $$")) ==
        "signal 9 (Killed)");
  const auto after_a_line = fake_python(folder, "echo half; echo > \"$4\"; kill -9 $$");
  CHECK(compile_error(cache, after_a_line) == "signal 9 (Killed) after the line: half");
  const auto found = cache.find(cache_key, some_target);
  CHECK(!found.package);
  CHECK(found.ignored.empty());
  CHECK(names_in(cache.folder()) == std::vector<std::string>{cache_key + ".lock", "inductor"});
  CHECK(compile_error(cache, fake_python(folder, writes_package)).empty());
}

TEST_CASE(
    "a compilation removes files left by killed compilations but keeps files in use and "
    "unrecognized files") {
  const TempDir folder;
  const PackageCache cache(folder.path() / "cache");
  const CompileFolder in_use(cache.folder(), "live");
  for (const std::string name : {".compiling.dead.aaaaaa", "dead", ".dead.aaaaaa"}) {
    fs::create_directories(cache.folder() / name / "sconce_cpp");
  }
  CHECK(compile_error(cache, fake_python(folder, writes_package)).empty());
  CHECK(names_in(cache.folder()) ==
        std::vector<std::string>{in_use.path().filename(), ".dead.aaaaaa", cache_key,
                                 cache_key + ".lock", "dead", "inductor"});
}

TEST_CASE("destroying a compilation kills Python and the processes that Python started") {
  const TempDir folder;
  const auto ids = folder.path() / "ids";
  const auto python = fake_python(
      folder, "sleep 300 & echo \"$$\n$!\" > '" + ids.string() + "'; echo > \"$4\"; wait");
  const PackageCache cache(folder.path() / "cache");
  auto compilation = cache.compile(cache_key, some_target, {}, python);
  wait_until([&] { return lines_in(ids) == 2; });
  const auto text = contents(ids);
  const auto id = first_line(ids),
             id_of_sleep = text.substr(id.size() + 1, text.size() - id.size() - 2);
  CHECK(is_running(id));
  CHECK(is_running(id_of_sleep));
  compilation.reset();
  CHECK(!fs::exists("/proc/" + id));
  wait_until([&] { return !is_running(id_of_sleep); });
  CHECK(names_in(cache.folder()) == std::vector<std::string>{cache_key + ".lock", "inductor"});
  CHECK(compile_error(cache, fake_python(folder, writes_package)).empty());
}

TEST_CASE("processes that Python leaves running are killed when the compilation ends") {
  const TempDir folder;
  const auto id = folder.path() / "id";
  const auto python =
      fake_python(folder, "sleep 300 & echo $! > '" + id.string() + "'; " + writes_package);
  CHECK(compile_error(PackageCache(folder.path() / "cache"), python).empty());
  REQUIRE(lines_in(id) == 1);
  wait_until([&] { return !is_running(first_line(id)); });
}

TEST_CASE(
    "a Python failure is reported with the last line of output, or with the exit code if there is "
    "no output") {
  const TempDir folder;
  const PackageCache cache(folder.path() / "cache");
  const auto error_with = [&](const std::string& script) {
    return compile_error(cache, fake_python(folder, script));
  };
  CHECK(error_with("echo first; echo 'ValueError: of Inductor' >&2; echo ' '; exit 1") ==
        "ValueError: of Inductor");
  CHECK(error_with("exit 3") == "exit code 3");
  CHECK(error_with("echo done") ==
        "expected Python to write a package, but no package was written");
  CHECK(error_with(writes_package + "; exit 4") == "exit code 4");
  CHECK(!cache.find(cache_key, some_target).package);
}

TEST_CASE("a Python interpreter that is missing or cannot run is reported with its path") {
  const TempDir folder;
  const PackageCache cache(folder.path() / "cache");
  const auto none = folder.path() / "none";
  CHECK(compile_error(cache, none) == "expected Python at " + none.string() + ", found none");
  CHECK(compile_error(cache, "sconce-no-python") ==
        "expected Python at sconce-no-python, found none");
  const auto text = folder.write("text", "");
  CHECK(compile_error(cache, text) ==
        "cannot start Python at " + text.string() + ": Permission denied");
  CHECK(names_in(cache.folder()) == std::vector<std::string>{cache_key + ".lock", "inductor"});
}

TEST_CASE("a relative path to Python is resolved against this process's working directory") {
  const TempDir folder;
  const auto python = fs::relative(fake_python(folder, writes_package));
  CHECK(compile_error(PackageCache(folder.path() / "cache"), python).empty());
}

TEST_CASE(
    "a compilation fails if its cache cannot acquire a lock or contains a regular file in place of "
    "an entry folder") {
  const TempDir folder;
  const PackageCache cache(folder.path() / "cache");
  const auto python = fake_python(folder, writes_package);
  const auto lock = cache.folder() / (cache_key + ".lock");
  fs::create_directory(lock);
  CHECK(compile_error(cache, python) == lock.string() + ": cannot create it: Is a directory");
  fs::remove(lock);
  const auto entry = folder.write("cache/" + cache_key, "");
  CHECK(compile_error(cache, python) ==
        entry.string() + ": expected a folder, found a regular file");
}

TEST_CASE("an error is reported if another part of the program collects Python's exit code",
          "[alone]") {
  const TempDir folder;
  const PackageCache cache(folder.path() / "cache");
  const auto handler = std::signal(SIGCHLD, SIG_IGN);
  const auto error = compile_error(cache, fake_python(folder, "exit 3"));
  std::signal(SIGCHLD, handler);
  CHECK(error == "another part of the program collected the child's exit code");
}

TEST_CASE(
    "the chosen step variant is stored next to the package and removed when the package is "
    "replaced") {
  const FilledCache filled;
  CHECK(filled.cache.choice(cache_key).empty());
  CHECK(filled.cache.store_choice(cache_key, "package").empty());
  CHECK(filled.cache.store_choice(cache_key, "replay").empty());
  CHECK(PackageCache(filled.cache.folder()).choice(cache_key) == "replay");
  CHECK(filled.cache.store_choice("never compiled", "replay").empty());
  CHECK(filled.cache.choice("never compiled") == "replay");
  CHECK(!filled.cache.find("never compiled", some_target).package);
  auto target = some_target;
  target.threads = 1;
  CHECK(compile_error(filled.cache, filled.python, target).empty());
  CHECK(filled.cache.choice(cache_key).empty());
  filled.folder.write("cache/file", "");
  CHECK_THAT(filled.cache.store_choice("file", "replay"), ContainsSubstring("Not a directory"));
  CHECK(filled.cache.choice("file").empty());
}

namespace {

// A small in-memory file system that fills up.
class SmallDisk {
 public:
  SmallDisk() {
    if (::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=256k,mode=700") != 0) {
      SKIP("needs permission to mount a file system: " << std::strerror(errno));
    }
  }
  ~SmallDisk() { ::umount(folder_.path().c_str()); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const fs::path& path() const { return folder_.path(); }

 private:
  TempDir folder_;
};

// Compiles on a full disk and returns the error. The compilation must leave neither a package nor
// other files behind.
std::string error_on_small_disk(const std::string& script, const Graph& program = {}) {
  const SmallDisk disk;
  const TempDir folder;
  const PackageCache cache(disk.path() / "cache");
  const auto filler = "cat /dev/zero > '" + (disk.path() / "filler").string() + "' 2> /dev/null\n";
  const auto python = fake_python(folder, "fill() { " + filler + "}\n" + script);
  auto error = compile_error(cache, python, some_target, program);
  CHECK(!cache.find(cache_key, some_target).package);
  for (const auto& name : names_in(cache.folder())) CHECK(name.front() != '.');
  fs::remove(disk.path() / "filler");
  CHECK(compile_error(cache, fake_python(folder, writes_package)).empty());
  CHECK(cache.find(cache_key, some_target).package);
  return error;
}

}  // namespace

TEST_CASE("a compilation reports a full disk if it cannot write the program", "[alone]") {
  Graph program;
  program.weights = {{.name = "constant",
                      .kind = sconce::program::detail::WeightKind::constant,
                      .value = 0,
                      .tensor = torch::zeros({100'000}),
                      .device = torch::kCPU}};
  program.values = 1;
  CHECK_THAT(error_on_small_disk("", program), ContainsSubstring("No space left on device"));
}

TEST_CASE("a compilation reports a full disk if its Python process cannot write the package",
          "[alone]") {
  CHECK(error_on_small_disk("head -c 1000000 /dev/zero > \"$4\"") == "exit code 1");
  CHECK_THAT(error_on_small_disk("echo > log\nhead -c 1000000 /dev/zero > \"$4\""),
             ContainsSubstring("No space left on device"));
}

TEST_CASE("a compilation reports a full disk if it cannot write the package description",
          "[alone]") {
  CHECK_THAT(error_on_small_disk(writes_package + "\nfill\nexit 0"),
             ContainsSubstring("about.json: cannot write it: No space left on device"));
}

TEST_CASE("storing the chosen step variant on a full disk returns an error", "[alone]") {
  const SmallDisk disk;
  const PackageCache cache(disk.path() / "cache");
  CHECK(cache.store_choice(cache_key, "package").empty());
  CHECK_THAT(cache.store_choice(cache_key, std::string(1'000'000, 'x')),
             ContainsSubstring("No space left on device"));
  CHECK(cache.choice(cache_key) == "package");
}

TEST_CASE(
    "a package's target describes this process's LibTorch, CPU, device, threads, and compiler") {
  const auto target = package_target(torch::kCPU);
  CHECK_THAT(target.torch, StartsWith(std::string(TORCH_VERSION) + ", build "));
  CHECK_THAT(target.cpu, ContainsSubstring(", instructions ") &&
                             ContainsSubstring(", " + at::get_cpu_capability()));
  CHECK(target.device == "cpu");
  CHECK(target.threads == at::get_num_threads());
  CHECK(target.compiler.size() == 8);
  CHECK(target == package_target(torch::kCPU));
  at::set_num_threads(target.threads + 1);
  const auto with_more = package_target(torch::kCPU);
  at::set_num_threads(target.threads);
  CHECK(with_more.threads == target.threads + 1);
  CHECK(difference(target, with_more) ==
        "expected a package for " + std::to_string(with_more.threads) + " threads, found one for " +
            std::to_string(target.threads));
}

TEST_CASE("a GPU package's target contains the GPU's name", "[gpu]") {
  sconce::test::require_gpu();
  const auto device = torch::Device(torch::kCUDA, 0);
  CHECK(package_target(device).device == sconce::cuda::get_device_properties(device).name);
}

TEST_CASE("the default Python is the interpreter whose installation contains the LibTorch in use") {
  const fs::path python = SCONCE_PYTHON;
  const auto found = sconce::program::detail::default_python();
  if (!fs::exists(python) || python.parent_path() == "/usr/bin") {  // none, or from a distribution
    CHECK(found == "python3");
  } else {
    CHECK(found.filename() == "python3");
    CHECK(fs::equivalent(found.parent_path(), python.parent_path()));
  }
}
