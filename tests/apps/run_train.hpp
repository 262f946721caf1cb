#pragma once

#include <cstdlib>
#include <string>

#include "support/run_program.hpp"

namespace sconce::test {

/// Programs that the tests start have one thread unless a test says otherwise, as ctest has it:
/// else they take as many as CPUs are idle, and two runs may differ in the last bits.
inline const bool has_one_thread = setenv("OMP_NUM_THREADS", "1", /*overwrite=*/0) == 0;

/// The command that runs sconce-train with these arguments. Where they name the CPU, it hides the
/// machine's GPUs, because sconce-train warns of a GPU that it leaves unused.
inline std::string train_command(const std::string& arguments) {
  const bool on_cpu = arguments.find("--device cpu") != std::string::npos;
  return std::string(on_cpu ? "env CUDA_VISIBLE_DEVICES= " : "") + SCONCE_BIN_DIR +
         "/sconce-train " + arguments;
}

/// Runs sconce-train with these arguments, waits for it and returns what it did.
inline Ran run_train(const std::string& arguments) {
  return run_program(train_command(arguments));
}

}  // namespace sconce::test
