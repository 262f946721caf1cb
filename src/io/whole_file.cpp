#include "sconce/io/whole_file.hpp"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "detail/host_call.hpp"

namespace sconce::io {

namespace {

// Whether a WholeFile with this prefix gave the file its name:
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

// Follows the symbolic links of the path. The limit ends a cycle of links.
std::filesystem::path resolved(std::filesystem::path path) {
  std::error_code error;
  for (int i = 0; i < 40 && std::filesystem::is_symlink(path, error); ++i) {
    const auto target = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / target;
  }
  return path;
}

}  // namespace

WholeFile::WholeFile(const std::filesystem::path& path, std::string who)
    : who_(std::move(who)), path_(resolved(path)), folder_(path_.parent_path()) {
  sconce::detail::refuse_in_capture(who_);
  if (folder_.empty()) folder_ = ".";
  check_before();
  sweep_parts(folder_, prefix());
  create();
}

WholeFile::~WholeFile() {
  if (fd_ < 0) return;
  ::unlink(part_.c_str());
  ::close(fd_);
}

void WholeFile::write(const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const auto written = ::write(fd_, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("write");
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

void WholeFile::finish() {
  if (before_) keep_access();
  if (::fsync(fd_) != 0) fail("sync");
  if (::rename(part_.c_str(), path_.c_str()) != 0) fail("rename");
  ::close(std::exchange(fd_, -1));
  const int error = sync_folder(folder_);
  TORCH_CHECK(error == 0, who_, ": ", path_.string(),
              ": cannot sync its folder: ", std::strerror(error));
}

// Checked here, because a rename only needs write permission for the folder, and what is wrong with
// the path would otherwise be found after everything was written.
void WholeFile::check_before() {
  TORCH_CHECK(path_.has_filename(), who_, ": expected the path of a file, got '", path_.string(),
              "'");
  struct stat before = {};
  if (::stat(path_.c_str(), &before) != 0) {
    if (errno == ENAMETOOLONG) fail("make");
    TORCH_CHECK(errno != ELOOP, who_, ": ", path_.string(),
                ": expected a link to a file, found a loop of links");
    return;
  }
  TORCH_CHECK(S_ISREG(before.st_mode), who_, ": ", path_.string(),
              ": expected a regular file to replace, found something else");
  if (::faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0) fail("write");
  before_ = before;
}

// Owner and group come first, because changing them removes permissions. Without root's rights
// the file belongs to the writer. If its group cannot be kept either, the permissions of the
// group are removed.
void WholeFile::keep_access() {
  struct stat part = {};
  if (::fstat(fd_, &part) != 0) fail("look at");
  const bool keeps_group = part.st_gid == before_->st_gid;
  const bool is_kept = (keeps_group && part.st_uid == before_->st_uid) ||
                       ::fchown(fd_, before_->st_uid, before_->st_gid) == 0 || keeps_group ||
                       ::fchown(fd_, part.st_uid, before_->st_gid) == 0;
  if (::fchmod(fd_, before_->st_mode & (is_kept ? 07777 : 0707)) != 0) {
    fail("keep the permissions of");
  }
}

void WholeFile::fail(const char* doing) const {
  const int error = errno;
  TORCH_CHECK(false, who_, ": ", path_.string(), ": cannot ", doing, " it: ", std::strerror(error));
}

// The name of a part is longer than that of the file, and file systems allow 255 bytes, some only
// 143.
std::string WholeFile::prefix() const {
  return path_.filename().string().substr(0, 100) + ".";
}

// The lock distinguishes a part being written from an abandoned one.
void WholeFile::create() {
  static std::atomic<int> parts = 0;
  struct stat now = {};
  do {  // repeat if it was swept between the two calls
    if (fd_ >= 0) ::close(fd_);
    part_ =
        folder_ / (prefix() + std::to_string(::getpid()) + "-" + std::to_string(parts++) + ".part");
    fd_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno == EEXIST) continue;  // left by an earlier process with the same number
    if (fd_ < 0) fail("make");
    // Some file systems have no locks; no parts are removed there.
    const bool locked =
        ::flock(fd_, LOCK_EX) == 0 || errno == ENOSYS || errno == ENOLCK || errno == EOPNOTSUPP;
    if (!locked || ::fstat(fd_, &now) != 0) fail("lock");
  } while (now.st_nlink == 0);
}

void write_whole(const std::filesystem::path& path, std::string_view text, std::string who) {
  WholeFile file(path, std::move(who));
  file.write(text.data(), text.size());
  file.finish();
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
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    if (!is_part(entry->path().filename().string(), prefix)) continue;
    const int fd = ::open(entry->path().c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
    ::close(fd);
  }
}

}  // namespace sconce::io
