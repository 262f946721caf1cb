#pragma once

#include <string>

#include "support/run_program.hpp"

namespace sconce::test {

/// Runs an example on the CPU with this working directory, waits for it, and returns its exit code
/// and output.
inline RunResult run_example(const std::filesystem::path& folder, const std::string& command) {
  return run_program("cd '" + folder.string() +
                     "' && env CUDA_VISIBLE_DEVICES= " SCONCE_BIN_DIR "/examples/" + command);
}

}  // namespace sconce::test
