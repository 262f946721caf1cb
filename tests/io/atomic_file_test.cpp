#include "sconce/io/atomic_file.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <csignal>
#include <cstdarg>
#include <functional>
#include <map>
#include <utility>

#include "catch.hpp"
#include "io/lock_errors.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/training/checkpoint.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::io::AtomicFile;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::TempDir;

namespace {

// The number of calls to the functions below that succeed before calls start to fail. With a
// negative value, all calls succeed.
int calls_left = -1;

// The error code for the calls that fail. A signal interrupts a single call, but a broken disk
// causes all later calls to fail.
int call_error = EIO;

// A hook that runs before each call to the functions below. Calls made inside the hook do not run
// the hook again.
std::function<void()> before_call;

// Returns whether the current call must fail.
bool fails() {
  if (const auto watch = std::exchange(before_call, nullptr)) {
    watch();
    before_call = watch;
  }
  if (calls_left < 0) return false;
  if (calls_left > 0) return --calls_left, false;
  if (call_error == EINTR) calls_left = -1;
  errno = call_error;
  return true;
}

// The error code that fsync sets for a folder, or 0 if fsync succeeds.
int folder_error = 0;

// Whether fsync actually writes to the disk. Disk writes account for most of a save's duration.
bool waits_for_disk = true;

bool is_folder(int fd) {
  struct stat status = {};
  return ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

// Whether the file system supports symbolic links.
bool has_links = true;

template <class F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The linker replaces the C library functions of the same names with these functions. A successful
// call may write only part of the data.
extern "C" ssize_t write(int fd, const void* data, size_t size) {
  if (fails()) return -1;
  return next<decltype(write)>("write")(fd, data,
                                        calls_left < 0 ? size : std::min<size_t>(size, 50));
}
extern "C" int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  return fails() ? -1 : next<decltype(open)>("open")(path, flags, mode);
}
extern "C" int flock(int fd, int operation) noexcept {
  if (sconce::test::errno_of_flock != 0) return errno = sconce::test::errno_of_flock, -1;
  return fails() ? -1 : next<decltype(flock)>("flock")(fd, operation);
}
extern "C" int fchown(int fd, uid_t owner, gid_t group) noexcept {
  return fails() ? -1 : next<decltype(fchown)>("fchown")(fd, owner, group);
}
extern "C" int fchmod(int fd, mode_t mode) noexcept {
  return fails() ? -1 : next<decltype(fchmod)>("fchmod")(fd, mode);
}
extern "C" int fsync(int fd) {
  if (folder_error != 0 && is_folder(fd)) return errno = folder_error, -1;
  if (fails()) return -1;
  return waits_for_disk ? next<decltype(fsync)>("fsync")(fd) : 0;
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
  sconce::io::write_file(file, text, "save");
}

// Drops root privileges for the lifetime of the object. If root privileges cannot be dropped, skips
// the test.
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

TEST_CASE("an unfinished save keeps the earlier file and leaves no temporary file") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  {
    AtomicFile whole(file, "save");
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

TEST_CASE(
    "a save through a symbolic link replaces the target and keeps the link and the permissions") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(file, folder.path() / "link");
  save(folder.path() / "link", "after");
  CHECK(fs::is_symlink(folder.path() / "link"));
  CHECK(contents(file) == "after");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a save through a dangling symbolic link creates the target and keeps the link") {
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

TEST_CASE(
    "a save rejects a file that the user is not allowed to write, and leaves the file unchanged",
    "[alone]") {
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

TEST_CASE(
    "when root saves another user's file, the owner is preserved and the setuid bit is cleared",
    "[alone]") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  if (::chown(file.c_str(), AsNobody::nobody, AsNobody::nobody) != 0 ||
      ::chmod(file.c_str(), 07640) != 0) {
    SKIP("needs permission to change the owner of a file: " << std::strerror(errno));
  }
  save(file, "after");
  struct stat now = {};
  REQUIRE(::stat(file.c_str(), &now) == 0);
  CHECK(contents(file) == "after");
  CHECK(now.st_uid == AsNobody::nobody);
  CHECK(now.st_gid == AsNobody::nobody);
  CHECK((now.st_mode & 07777) == 0640);
}

namespace {

struct stat status_of(const fs::path& path) {
  struct stat status = {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

// Returns whether any file in the folder has wider permissions than a file with status `before`, or
// is owned by anyone other than that file's owner or the current user.
bool has_wider_file(const TempDir& folder, const struct stat& before) {
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    const struct stat now = status_of(entry.path());
    const mode_t of_group = now.st_gid == before.st_gid ? before.st_mode & 070 : 0;
    const mode_t allowed = 0700 | of_group | (before.st_mode & 07);
    const bool has_owner = now.st_uid == before.st_uid || now.st_uid == ::geteuid();
    if ((now.st_mode & 07777 & ~allowed) != 0 || !has_owner) return true;
  }
  return false;
}

// Creates a file with the given mode, regardless of the umask. If the test runs as root, the file
// belongs to another user.
class PrivateFile {
 public:
  explicit PrivateFile(mode_t mode) : umask_(::umask(0)) {
    const uid_t owner = ::geteuid() == 0 ? AsNobody::nobody : ::geteuid();
    REQUIRE(::chown(path.c_str(), owner, owner) == 0);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    status = status_of(path);
  }
  ~PrivateFile() { ::umask(umask_); }
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;

  const TempDir folder;
  const fs::path path = folder.write("file", "before");
  struct stat status = {};

 private:
  mode_t umask_;
};

}  // namespace

TEST_CASE("a save never creates a file with wider permissions than the file it replaces",
          "[alone]") {
  for (const mode_t mode : {0600, 0640, 0604, 0660}) {
    INFO("mode " << std::oct << mode);
    const PrivateFile file(mode);
    int calls = 0, wider = 0;
    before_call = [&] { ++calls, wider += has_wider_file(file.folder, file.status); };
    save(file.path, "after");
    before_call = nullptr;
    CHECK(calls >= 7);  // open, flock, write, fchmod, fsync, rename, and fsync of the folder
    CHECK(wider == 0);
    CHECK(contents(file.path) == "after");
    const struct stat now = status_of(file.path);
    CHECK((now.st_mode & 07777) == mode);
    CHECK((now.st_uid == file.status.st_uid && now.st_gid == file.status.st_gid));
  }
}

TEST_CASE(
    "a save killed at any moment leaves no file with wider permissions than the file it replaces",
    "[alone]") {
  int kills = 0;
  for (bool done = false; !done; ++kills) {
    const PrivateFile file(0600);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      int calls = 0;
      before_call = [&] {
        if (calls++ == kills) ::raise(SIGKILL);
      };
      save(file.path, std::string(100, 'x'));
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    done = WIFEXITED(status);
    INFO("killed at call " << kills);
    const bool is_new = contents(file.path) == std::string(100, 'x');
    CHECK((is_new || (contents(file.path) == "before" && !done)));
    CHECK_FALSE(has_wider_file(file.folder, file.status));
  }
  CHECK(kills > 7);
}

TEST_CASE("a save keeps permission changes made while the save is in progress") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  AtomicFile narrowed(file, "save");
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  narrowed.finish();
  CHECK((status_of(file).st_mode & 07777) == 0600);
  AtomicFile of_new(folder.path() / "new", "save");
  folder.write("new", "by another");
  REQUIRE(::chmod((folder.path() / "new").c_str(), 0600) == 0);
  of_new.finish();
  CHECK((status_of(folder.path() / "new").st_mode & 07777) == 0600);
}

TEST_CASE(
    "a save that cannot preserve the file's group does not grant other users more permissions than "
    "the group had",
    "[alone]") {
  const TempDir folder;
  fs::permissions(folder.path(), fs::perms::all);
  const auto file = folder.write("file", "before");
  if (::chown(file.c_str(), AsNobody::nobody, 1234) != 0) {
    SKIP("needs permission to change the owner of a file: " << std::strerror(errno));
  }
  const auto replaced = [&](mode_t mode) {
    REQUIRE(::chown(file.c_str(), AsNobody::nobody, 1234) == 0);
    REQUIRE(::chmod(file.c_str(), mode) == 0);
    const AsNobody nobody;
    save(file, "after");
    return status_of(file).st_mode & 07777;
  };
  CHECK(replaced(0664) == 0604);
  CHECK(replaced(0640) == 0600);
  CHECK(replaced(0604) == 0600);
}

TEST_CASE("a save keeps the file's access control list and does not inherit one from the folder") {
  // An access control list is stored as the version number 2, followed by the entries. Each entry
  // contains a tag, permissions, and a user. The tags are 1 for the owner, 2 for a user, 4 for the
  // group, 16 for the mask, and 32 for others.
  const auto entry = [](uint16_t tag, uint16_t permissions, uint32_t user = ~uint32_t{0}) {
    std::string bytes(reinterpret_cast<const char*>(&tag), sizeof tag);
    bytes.append(reinterpret_cast<const char*>(&permissions), sizeof permissions);
    return bytes.append(reinterpret_cast<const char*>(&user), sizeof user);
  };
  const std::string list = std::string("\2\0\0\0", 4) + entry(1, 6) + entry(2, 4, 1234) +
                           entry(4, 0) + entry(16, 4) + entry(32, 0);
  constexpr auto access = "system.posix_acl_access", of_folder = "system.posix_acl_default";
  const TempDir folder;
  const auto file = folder.write("file", "before");
  if (::setxattr(file.c_str(), access, list.data(), list.size(), 0) != 0) {
    SKIP("needs a file system with access control lists: " << std::strerror(errno));
  }
  save(file, "after");
  std::string kept(1000, '\0');
  kept.resize(static_cast<size_t>(
      std::max<ssize_t>(0, ::getxattr(file.c_str(), access, kept.data(), 1000))));
  CHECK(kept == list);
  CHECK((status_of(file).st_mode & 07777) == 0640);
  const auto plain = folder.write("plain", "before");
  REQUIRE(::chmod(plain.c_str(), 0640) == 0);
  REQUIRE(::setxattr(folder.path().c_str(), of_folder, list.data(), list.size(), 0) == 0);
  save(plain, "after");
  CHECK(::getxattr(plain.c_str(), access, nullptr, 0) == -1);
  CHECK((status_of(plain).st_mode & 07777) == 0640);
}

TEST_CASE("a save in a world-writable folder does not follow another user's symbolic link",
          "[alone]") {
  const TempDir folder;
  const auto file = folder.write("file", "before");
  const auto shared = folder.path() / "shared";
  fs::create_directory(shared);
  fs::create_symlink(file, shared / "link");
  save(shared / "link", "by the own link");
  REQUIRE(::chmod(shared.c_str(), 01777) == 0);
  if (::lchown((shared / "link").c_str(), AsNobody::nobody, AsNobody::nobody) != 0) {
    SKIP("needs permission to change the owner of a link: " << std::strerror(errno));
  }
  CHECK_THAT(
      error_of([&] { save(shared / "link", "after"); }),
      ContainsSubstring((shared / "link").string() + ": expected a link owned by this user"));
  CHECK(contents(file) == "by the own link");
  REQUIRE(::chmod(shared.c_str(), 0777) == 0);  // like the system, a save now follows the link
  save(shared / "link", "after");
  CHECK(contents(file) == "after");
}

TEST_CASE("a file name may be as long as the file system allows") {
  const TempDir folder;
  const std::string common(254, 'x');
  folder.write(std::string(100, 'x') + ".4711-0.part", "left by a killed writer");
  AtomicFile one(folder.path() / (common + "1"), "save");
  AtomicFile two(folder.path() / (common + "2"), "save");
  one.write("one", 3);
  two.write("two", 3);
  one.finish();
  two.finish();
  CHECK(contents(folder.path() / (common + "1")) == "one");
  CHECK(contents(folder.path() / (common + "2")) == "two");
  CHECK(count(folder) == 2);
}

TEST_CASE(
    "a save removes the temporary file that a killed writer left for the same file and keeps all "
    "other files") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  folder.write("file.4711-0.part", "left");
  folder.write("other.4711-0.part", "not ours");
  const std::vector<std::string> others = {"file.old.part", "file.00.part", "file.1-.part",
                                           "file.-1.part",  "file.-.part",  "file.2026-01-31.part"};
  for (const auto& other : others) folder.write(other, "no writer's");
  AtomicFile one(file, "save");
  AtomicFile two(file, "save");
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

// Two functions: one saves versioned state in a folder, and the other reads the version number
// back.
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

namespace {

// Replaces version 1 with version 2. All calls after the first `successes` calls fail. Returns
// whether any call failed.
bool check_failing_save(const std::string& name, const Way& way, int successes) {
  const TempDir folder;
  way.save(folder.path(), 1);
  const auto files = count(folder);
  calls_left = successes;
  const std::string error = error_of([&] { way.save(folder.path(), 2); });
  const bool has_failed = std::exchange(calls_left, -1) <= 0;
  INFO(name << ": " << std::strerror(call_error) << " after " << successes << ": " << error);
  const auto version = way.version(folder.path());
  const bool is_saved = error == "nothing was thrown";
  CHECK((version == 2 || (version == 1 && !is_saved)));
  // A save may fail to rename its new link for the best checkpoint. The next save then removes that
  // link.
  CHECK(count(folder) <= files + (version == 2 && name == "checkpoint" ? 2 : 0));
  if (!is_saved) {
    CHECK_THAT(error, ContainsSubstring(folder.path().string()) && ContainsSubstring("cannot ") &&
                          ContainsSubstring(std::strerror(call_error)));
  }
  return has_failed;
}

}  // namespace

TEST_CASE(
    "if any system call fails during a save, the file contains either the complete old version or "
    "the complete new version",
    "[alone]") {
  waits_for_disk = false;
  for (const int error : {EIO, ENOSPC, EINTR, EMFILE}) {
    for (const auto& [name, way] : ways) {
      call_error = error;
      int calls = 0;
      while (check_failing_save(name, way, calls)) ++calls;
      // A save opens a folder and a temporary file, locks the file, writes to it three times, syncs
      // twice, and renames the file.
      CHECK(calls >= 2 + 1 + 3 + 3);
    }
  }
  call_error = EIO;
  waits_for_disk = true;
}

TEST_CASE(
    "a save succeeds on a file system that cannot sync folders, but a disk error is reported") {
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
        ContainsSubstring(file.string() + ": cannot sync the folder: " + std::strerror(error)));
  }
}

TEST_CASE("a save succeeds in a folder that is writable but not readable", "[alone]") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  fs::permissions(folder.path(), fs::perms::all & ~fs::perms::others_read);
  const AsNobody nobody;
  save(file, "new");
  CHECK(contents(file) == "new");
}

TEST_CASE("best.pt is a copy of the best checkpoint if the file system does not support links") {
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

TEST_CASE("a save that exceeds the file size limit keeps the earlier file and reports the cause",
          "[alone]") {
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

TEST_CASE("a save to a full disk keeps the earlier file and reports the cause", "[alone]") {
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

TEST_CASE("a failed save reports the path and the cause") {
  const TempDir folder;
  CHECK_THROWS_WITH(save(folder.path() / "none" / "file", ""),
                    ContainsSubstring("save: ") && ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(save(folder.path(), ""), ContainsSubstring("expected a regular file"));
}

TEST_CASE("a path that cannot refer to a file is rejected before anything is written") {
  const TempDir folder;
  const auto begin = [](const fs::path& path) {
    return error_of([&] { AtomicFile(path, "save"); });
  };
  CHECK(begin("") == "save: expected a file path, got ''");
  const auto inner = folder.path() / "inner" / "";
  CHECK(begin(inner) == "save: expected a file path, got '" + inner.string() + "'");
  CHECK_THAT(begin(folder.path() / std::string(256, 'x')),
             ContainsSubstring(": cannot create it: File name too long"));
  const auto with_nul = folder.path() / std::string("a\0b", 3);
  CHECK_THAT(begin(with_nul), ContainsSubstring("a: expected a path without NUL bytes"));
  CHECK(count(folder) == 0);
}
