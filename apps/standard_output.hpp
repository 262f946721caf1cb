#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace apps {

/// Checks at the end of a program that all its output was written: a disk may be full, or a pipe
/// closed.
/// @throw std::runtime_error if not, with the cause if it is known.
inline void check_standard_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const std::string cause = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  throw std::runtime_error("cannot write to standard output" + cause);
}

}  // namespace apps
