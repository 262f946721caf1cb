#pragma once

#include <iostream>
#include <stdexcept>
#include <string>

namespace apps {

/// The error for an invalid command line. `what()` returns one line that contains the flag and its
/// valid values.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Prints the program's name and the first line of an error to standard error. In errors from
/// LibTorch, the remaining lines are a backtrace. Returns the exit code, which is 2 for an invalid
/// command line and 1 otherwise.
inline int fail(const std::string& program, const std::string& error, int code = 1) {
  std::cerr << program << ": " << error.substr(0, error.find('\n')) << '\n';
  return code;
}

}  // namespace apps
