#pragma once

#include <cstdlib>
#include <string>

#include "support/run_program.hpp"

namespace sconce::test {

/// Unless a test overrides it, programs started by the tests use one thread, as they do under
/// ctest. By default, they would use one thread per idle CPU, and two runs could differ in the last
/// bits.
inline const bool has_one_thread = setenv("OMP_NUM_THREADS", "1", /*overwrite=*/0) == 0;

/// Returns the command that runs sconce-train with the given arguments. If the arguments select the
/// CPU, the command hides the machine's GPUs, because sconce-train warns about unused GPUs.
inline std::string train_command(const std::string& arguments) {
  const bool on_cpu = arguments.find("--device cpu") != std::string::npos;
  return std::string(on_cpu ? "env CUDA_VISIBLE_DEVICES= " : "") + SCONCE_BIN_DIR +
         "/sconce-train " + arguments;
}

/// Runs sconce-train with the given arguments, waits for it to exit, and returns its exit code and
/// output.
inline RunResult run_train(const std::string& arguments) {
  return run_program(train_command(arguments));
}

}  // namespace sconce::test
