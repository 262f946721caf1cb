#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/temp_dir.hpp"

namespace sconce::test {

/// The result of running a program: its exit code (-1 if it was killed) and its output on each
/// stream.
struct RunResult {
  int exit_code = -1;
  std::string out = {};
  std::string err = {};
};

/// Runs a command line in the shell, waits for it to finish, and returns the result.
inline RunResult run_program(const std::string& command) {
  const TempDir folder;
  const std::string out = (folder.path() / "out").string();
  const std::string err = (folder.path() / "err").string();
  const int status = std::system((command + " >" + out + " 2>" + err + " </dev/null").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
}

/// Returns the path of torchrun in the Python installation that contains this build's LibTorch. If
/// LibTorch does not come from a Python package, the file does not exist.
inline std::filesystem::path torchrun() {
  return std::filesystem::path(SCONCE_PYTHON).replace_filename("torchrun");
}

}  // namespace sconce::test
