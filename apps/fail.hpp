#pragma once

#include <iostream>
#include <stdexcept>
#include <string>

namespace apps {

/// An invalid command line. `what()` is one line that names the flag and its valid values.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Prints the program's name and the first line of an error to standard error; in errors from
/// LibTorch, the other lines are a backtrace. Returns the exit code: 2 for an invalid command line,
/// otherwise 1.
inline int fail(const std::string& program, const std::string& error, int code = 1) {
  std::cerr << program << ": " << error.substr(0, error.find('\n')) << '\n';
  return code;
}

}  // namespace apps
