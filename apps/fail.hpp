#pragma once

#include <iostream>
#include <stdexcept>
#include <string>

namespace apps {

/// The error of an invalid command line. `what()` is one line with the flag and what it takes.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Prints the first line of an error to standard error, after the program's name; the further lines
/// of LibTorch's errors are backtraces. Returns the exit code: 2 for a wrong command line, else 1.
inline int fail(const std::string& program, const std::string& error, int code = 1) {
  std::cerr << program << ": " << error.substr(0, error.find('\n')) << '\n';
  return code;
}

}  // namespace apps
