#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "catch.hpp"
#include "support/run_program.hpp"

namespace sconce::test {

/// Returns the start of a command line that runs a Python script with the Python interpreter that
/// this program's LibTorch belongs to. The script runs in a fork of the server that ctest has
/// started, or in a separate process if there is no server. The server cannot see any GPUs, so it
/// is not used if this program can see one.
inline std::string python_command() {
  const std::string python = "'" SCONCE_PYTHON "' ";
  if (torch::cuda::is_available()) return python;
  return python + "'" SCONCE_TESTS_DIR "/support/python_server.py' run '" SCONCE_PYTHON_SERVER "-" +
         std::to_string(getppid()) + "' ";
}

/// Runs reference/<script> with `python_command`, `what`, and the name of an output file, and
/// returns that file. Skips the test if that Python interpreter is not available or if a package is
/// missing, which the script reports with exit code 77. Fails the test if the script fails.
inline std::ifstream ask_python(const TempDir& folder, const std::string& script,
                                const std::string& what) {
  const std::string python = SCONCE_PYTHON;
  if (!std::filesystem::exists(python)) SKIP("needs LibTorch's Python: there is no " + python);
  const auto file = folder.path() / what;
  const auto ran = run_program(python_command() + "'" SCONCE_TESTS_DIR "/reference/" + script +
                               "' " + what + " " + file.string());
  INFO(ran.err);
  if (ran.exit_code == 77) SKIP(ran.err);
  REQUIRE(ran.exit_code == 0);
  return std::ifstream(file, std::ios::binary);
}

}  // namespace sconce::test
