#pragma once

#include <cstdlib>
#include <string>

#include "support/run_program.hpp"

namespace sconce::test {

/// The programs that the tests start use one thread unless a test says otherwise, as under ctest.
/// Otherwise they would use one thread per idle CPU, and two runs could differ in the last bits.
inline const bool has_one_thread = setenv("OMP_NUM_THREADS", "1", /*overwrite=*/0) == 0;

/// The command that runs sconce-train with these arguments. If the arguments choose the CPU, it
/// hides the machine's GPUs, because sconce-train warns about a GPU that it leaves unused.
inline std::string train_command(const std::string& arguments) {
  const bool on_cpu = arguments.find("--device cpu") != std::string::npos;
  return std::string(on_cpu ? "env CUDA_VISIBLE_DEVICES= " : "") + SCONCE_BIN_DIR +
         "/sconce-train " + arguments;
}

/// Runs sconce-train with these arguments, waits for it, and returns its exit code and output.
inline RunResult run_train(const std::string& arguments) {
  return run_program(train_command(arguments));
}

}  // namespace sconce::test
