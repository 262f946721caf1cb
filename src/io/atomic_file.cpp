#include "sconce/io/atomic_file.hpp"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "check_path.hpp"
#include "host_call.hpp"
#include "io/folder_names.hpp"
#include "io/input_file.hpp"

namespace sconce::io {

namespace {

// Returns whether an AtomicFile with this prefix chose the file name:
// <prefix>...<process>-<number>.part
bool is_part(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix) || !name.ends_with(".part")) return false;
  const std::string numbers = std::filesystem::path(name).stem().extension().string();
  const size_t dash = numbers.find('-');
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  };
  return dash != numbers.npos && is_number(std::string_view(numbers).substr(1, dash - 1)) &&
         is_number(std::string_view(numbers).substr(dash + 1));
}

// Returns 0 or errno. On file systems that do not support locks, abandoned temporary files are not
// removed.
int lock_part(int fd) {
  while (::flock(fd, LOCK_EX) != 0) {
    if (errno == ENOSYS || errno == ENOLCK || errno == EOPNOTSUPP) return 0;
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Returns whether the system would follow the link if `fs.protected_symlinks` were set. Without
// this check, a link created by another user in a folder such as /tmp could determine which file is
// replaced. Other users cannot replace links that pass this check.
bool may_follow(const struct stat& link, const std::filesystem::path& folder) {
  struct stat around = {};
  if (::stat(folder.empty() ? "." : folder.c_str(), &around) != 0) return false;
  const bool is_shared = (around.st_mode & S_ISVTX) != 0 && (around.st_mode & S_IWOTH) != 0;
  return !is_shared || link.st_uid == ::geteuid() || link.st_uid == around.st_uid;
}

// Follows the symbolic links in the path. The limit on the number of links prevents an infinite
// loop if the links form a cycle.
std::filesystem::path resolved(std::filesystem::path path, const std::string& caller) {
  check_path(path, caller);
  std::error_code error;
  struct stat link = {};
  for (int i = 0; i < 40 && ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode); ++i) {
    TORCH_CHECK(may_follow(link, path.parent_path()), caller, ": ", path.string(),
                ": expected a link owned by this user or by the owner of the folder (the folder is "
                "world-writable), got a link owned by another user");
    const auto target = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / target;
  }
  return path;
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& path, std::string caller)
    : caller_(std::move(caller)), path_(resolved(path, caller_)), folder_(path_.parent_path()) {
  sconce::detail::check_not_capturing(caller_);
  if (folder_.empty()) folder_ = ".";
  check_before();
  sweep_parts(folder_, prefix());
  create();
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) discard();
}

void AtomicFile::discard() {
  ::unlink(part_.c_str());
  ::close(std::exchange(fd_, -1));
}

void AtomicFile::write(const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const auto written = ::write(fd_, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("write");
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

void AtomicFile::finish() {
  struct stat now = {};  // the permissions or the file may have changed
  if (::lstat(path_.c_str(), &now) == 0 && S_ISREG(now.st_mode)) before_ = now;
  if (before_) keep_access();
  if (::fsync(fd_) != 0) fail("sync");
  if (::rename(part_.c_str(), path_.c_str()) != 0) fail("rename");
  ::close(std::exchange(fd_, -1));
  const int error = sync_folder(folder_);
  TORCH_CHECK(error == 0, caller_, ": ", path_.string(),
              ": cannot sync the folder: ", std::strerror(error));
}

// Checks the path before anything is written. Without this check, an unwritable file would be
// replaced, because renaming requires write permission only for the folder. Other problems with the
// path would surface only at the end.
void AtomicFile::check_before() {
  TORCH_CHECK(path_.has_filename(), caller_, ": expected a file path, got '", path_.string(), "'");
  struct stat before = {};
  const int error = ::lstat(path_.c_str(), &before) == 0 ? 0 : errno;
  if (error == ENAMETOOLONG) fail("create");
  TORCH_CHECK(error != ELOOP && !S_ISLNK(before.st_mode), caller_, ": ", path_.string(),
              ": expected a link to a file, got a loop of symbolic links");
  if (error != 0) return;
  TORCH_CHECK(S_ISREG(before.st_mode), caller_, ": ", path_.string(),
              ": expected a regular file to replace, found ", kind_of(before.st_mode));
  if (::faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0) fail("write");
  before_ = before;
}

// Sets the permissions as the last step. Until then, only the owner can access the file. If the
// file's group cannot be preserved, the group's members are treated as other users. Therefore,
// other users receive at most the permissions that the group had.
void AtomicFile::keep_access() {
  const mode_t mode = before_->st_mode & 0777;
  const mode_t without_group = mode & (0700 | (mode >> 3 & 07));
  const bool is_kept = keep_owner() && keep_access_list();
  if (::fchmod(fd_, is_kept ? mode : without_group) != 0) fail("keep the permissions of");
}

// Returns whether the file's group was preserved. Without root privileges, the new file is owned by
// the user that runs this process.
bool AtomicFile::keep_owner() {
  struct stat part = {};
  if (::fstat(fd_, &part) != 0) fail("inspect");
  const bool keeps_group = part.st_gid == before_->st_gid;
  return (keeps_group && part.st_uid == before_->st_uid) ||
         ::fchown(fd_, before_->st_uid, before_->st_gid) == 0 || keeps_group ||
         ::fchown(fd_, part.st_uid, before_->st_gid) == 0;
}

// If a file has an access control list, the group bits in its mode are an upper bound for the whole
// list. Therefore, copying only the mode could give the group additional permissions. The temporary
// file may also have inherited an access control list from its folder.
bool AtomicFile::keep_access_list() {
  constexpr auto name = "system.posix_acl_access";
  std::array<char, 1 << 16> list;  // the system's size limit
  const auto has_none = [] { return errno == ENODATA || errno == EOPNOTSUPP; };
  const auto size = ::lgetxattr(path_.c_str(), name, list.data(), list.size());
  if (size >= 0) return ::fsetxattr(fd_, name, list.data(), static_cast<size_t>(size), 0) == 0;
  return has_none() && (::fremovexattr(fd_, name) == 0 || has_none());
}

void AtomicFile::fail(const char* doing) const {
  const int error = errno;
  TORCH_CHECK(false, caller_, ": ", path_.string(), ": cannot ", doing,
              " it: ", std::strerror(error));
}

// The temporary file name is longer than the final file name. Most file systems limit names to 255
// bytes, and some limit them to 143 bytes.
std::string AtomicFile::prefix() const {
  return path_.filename().string().substr(0, 100) + ".";
}

// The lock distinguishes a temporary file that is still being written from an abandoned temporary
// file.
void AtomicFile::create() {
  static std::atomic<int> parts = 0;
  struct stat now = {};
  do {  // repeat if another process removed the part between the two calls
    if (fd_ >= 0) ::close(fd_);
    part_ =
        folder_ / (prefix() + std::to_string(::getpid()) + "-" + std::to_string(parts++) + ".part");
    // Other users must not be able to read the replacement for a private file while it is being
    // written.
    const mode_t mode = before_ ? 0600 : 0666;
    fd_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd_ < 0 && errno == EEXIST) continue;  // left by an earlier process with the same ID
    if (fd_ < 0) fail("create");
    int error = lock_part(fd_);
    if (error == 0 && ::fstat(fd_, &now) != 0) error = errno;
    if (error != 0) {
      discard();  // the destructor does not run if a constructor throws
      errno = error;
      fail("lock");
    }
  } while (now.st_nlink == 0);
}

void write_file(const std::filesystem::path& path, std::string_view text, std::string caller) {
  AtomicFile file(path, std::move(caller));
  file.write(text.data(), text.size());
  file.finish();
}

std::string read_file(const std::filesystem::path& path, const std::string& caller) {
  return InputFile(path, caller).text();
}

int sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno == EACCES ? 0 : errno;
  const int error = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  const bool can_sync = error != EINVAL && error != EBADF && error != ENOSYS && error != EOPNOTSUPP;
  return can_sync ? error : 0;
}

void sweep_parts(const std::filesystem::path& folder, const std::string& prefix) {
  std::error_code ignored;  // the next save tries again
  for (const auto& name : sconce::detail::folder_names(folder, ignored)) {
    if (!is_part(name, prefix)) continue;
    const auto path = folder / name;
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
    ::close(fd);
  }
}

}  // namespace sconce::io
