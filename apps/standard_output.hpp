#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace apps {

/// Checks at the end of a program that all of its output was written. Writing fails, for example,
/// if the disk is full or the pipe is closed.
/// @throw std::runtime_error if any output was not written, stating the cause if it is known.
inline void check_standard_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const std::string cause = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  throw std::runtime_error("cannot write to standard output" + cause);
}

}  // namespace apps
