#include "program/compile_folder.hpp"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "io/folder_names.hpp"

namespace sconce::program::detail {

namespace {

namespace fs = std::filesystem;

const std::string compile_folder_prefix = ".compiling.";

int open_folder(const fs::path& folder) {
  return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

// Returns 0 or errno.
int lock_new_folder(int fd) {
  while (::flock(fd, LOCK_EX) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

CompileLock::CompileLock(const fs::path& file)
    : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  TORCH_CHECK(fd_ >= 0, file.string(), ": cannot create it: ", std::strerror(errno));
  is_held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  const int error = errno;
  if (is_held_ || error == EWOULDBLOCK || error == EINTR) return;
  ::close(fd_);  // the destructor does not run if a constructor throws
  TORCH_CHECK(false, file.string(), ": cannot lock it: ", std::strerror(error));
}

CompileLock::~CompileLock() {
  ::close(fd_);
}

// Until the folder is locked, another process may consider it abandoned and remove it.
CompileFolder::CompileFolder(const fs::path& cache, const std::string& key) {
  const std::string pattern = cache / (compile_folder_prefix + key + ".XXXXXX");
  while (fd_ < 0) {
    std::string name = pattern;
    TORCH_CHECK(::mkdtemp(name.data()) != nullptr, cache.string(),
                ": cannot create a subfolder: ", std::strerror(errno));
    path_ = name;
    fd_ = open_folder(path_);
    TORCH_CHECK(fd_ >= 0 || errno == ENOENT, name, ": cannot open it: ", std::strerror(errno));
    if (fd_ < 0) continue;
    const int error = lock_new_folder(fd_);
    struct stat status = {};
    if (error == 0 && ::lstat(path_.c_str(), &status) == 0) return;
    ::close(std::exchange(fd_, -1));
    TORCH_CHECK(error == 0, name, ": cannot lock it: ", std::strerror(error));
  }
}

CompileFolder::~CompileFolder() {
  std::error_code ignored;  // the next compilation tries again
  fs::remove_all(path_, ignored);
  ::close(fd_);
}

void CompileFolder::remove_abandoned(const fs::path& cache) {
  std::error_code ignored;
  for (const auto& name : sconce::detail::folder_names(cache, ignored)) {
    if (!name.starts_with(compile_folder_prefix)) continue;
    const int fd = open_folder(cache / name);
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) fs::remove_all(cache / name, ignored);
    ::close(fd);
  }
}

}  // namespace sconce::program::detail
