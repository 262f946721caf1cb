#pragma once

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "check_path.hpp"

namespace sconce::io {

/// Returns a description of the file type in `mode`, such as "a FIFO".
inline std::string_view kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "a regular file";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISLNK(mode)) return "a link";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "something else";
}

/// A regular file that is open for reading. Error messages include its path. The file's type is
/// checked after the file is opened, because another process could replace the file between an
/// earlier check and the opening. Opening the file never blocks.
class InputFile {
 public:
  InputFile(const std::filesystem::path& path, const std::string& caller)
      : name_(caller + ": " + path.string() + ": ") {
    check_path(path, caller);
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    TORCH_CHECK(fd_ >= 0, name_, "cannot open it: ", std::strerror(errno));
    struct stat status = {};
    const bool regular = ::fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
    if (!regular) ::close(fd_);
    TORCH_CHECK(regular, name_, "expected a regular file, found ", kind_of(status.st_mode));
    size_ = static_cast<uint64_t>(status.st_size);
  }
  ~InputFile() { ::close(fd_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Returns "function: path: ", the prefix of error messages.
  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }

  void read(uint64_t offset, void* data, uint64_t size) const {
    auto* bytes = static_cast<char*>(data);
    while (size > 0) {
      const auto got = ::pread(fd_, bytes, size, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      TORCH_CHECK(got >= 0, name_, "cannot read at byte ", offset, ": ", std::strerror(errno));
      TORCH_CHECK(got > 0, name_, "expected ", size, " more bytes at byte ", offset, ", got none");
      bytes += got;
      offset += static_cast<uint64_t>(got);
      size -= static_cast<uint64_t>(got);
    }
  }

  /// Returns the whole contents of the file.
  std::string text() const {
    std::string bytes(size_, '\0');
    read(0, bytes.data(), bytes.size());
    return bytes;
  }

  /// Returns another descriptor for the open file, positioned at the beginning. The caller must
  /// close it.
  int duplicate() const {
    const int fd = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
    TORCH_CHECK(fd >= 0, name_, "cannot open it: ", std::strerror(errno));
    return fd;
  }

  /// Maps the whole file into memory. Changes to the memory are not written to the file. With
  /// `random_access`, accessing a page reads only that page and not the surrounding pages.
  std::shared_ptr<char> map(bool random_access) const {
    if (size_ == 0) return nullptr;
    void* mapped =
        ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd_, 0);
    TORCH_CHECK(mapped != MAP_FAILED, name_, "cannot map the file: ", std::strerror(errno));
    std::shared_ptr<char> memory(static_cast<char*>(mapped),
                                 [size = size_](char* start) { ::munmap(start, size); });
    TORCH_CHECK(!random_access || ::madvise(mapped, size_, MADV_RANDOM) == 0, name_,
                "cannot map the file for random access: ", std::strerror(errno));
    return memory;
  }

 private:
  std::string name_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace sconce::io
