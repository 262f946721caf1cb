#pragma once

#include <string>

#include "support/run_program.hpp"

namespace sconce::test {

/// Runs an example on the CPU in the given working directory, waits for it to exit, and returns its
/// exit code and output.
inline RunResult run_example(const std::filesystem::path& folder, const std::string& command) {
  return run_program("cd '" + folder.string() +
                     "' && env CUDA_VISIBLE_DEVICES= " SCONCE_BIN_DIR "/examples/" + command);
}

}  // namespace sconce::test
