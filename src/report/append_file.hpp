#pragma once

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "check_path.hpp"

namespace sconce {

/// Appends complete pieces of text to a file. If a piece cannot be written completely, no part of
/// it remains in the file. Opening the file never blocks, so a FIFO without a reader is rejected.
class AppendFile {
 public:
  /// Error messages start with `caller`. The first `append` opens or creates the file.
  AppendFile(std::filesystem::path path, std::string caller)
      : path_(std::move(path)), caller_(std::move(caller)) {
    check_path(path_, caller_);
  }
  ~AppendFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Appends the piece to the file, in a single call if the system accepts the whole piece.
  void append(std::string_view piece) {
    open();
    struct stat before = {};
    if (::fstat(fd_, &before) != 0) fail("look at", errno);
    while (!piece.empty()) {
      const auto written = ::write(fd_, piece.data(), piece.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        const int error = errno;
        // If a partial write cannot be removed, nothing may be appended after it.
        if (::ftruncate(fd_, before.st_size) != 0) ::close(std::exchange(fd_, broken));
        fail("write", error);
      }
      piece.remove_prefix(static_cast<size_t>(written));
    }
  }

 private:
  static constexpr int broken = -2;

  void open() {
    TORCH_CHECK(fd_ != broken, caller_, ": ", path_.string(), ": an earlier write was cut off");
    if (fd_ >= 0) return;
    constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    fd_ = ::open(path_.c_str(), flags, 0666);
    if (fd_ < 0) fail("open", errno);
  }

  [[noreturn]] void fail(const char* doing, int error) const {
    TORCH_CHECK(false, caller_, ": ", path_.string(), ": cannot ", doing,
                " it: ", std::strerror(error));
  }

  std::filesystem::path path_;
  std::string caller_;
  int fd_ = -1;
};

}  // namespace sconce
