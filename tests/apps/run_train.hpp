#pragma once

#include <string>

#include "support/run_program.hpp"

namespace sconce::test {

/// Runs sconce-train with these arguments, waits for it and returns what it did.
inline Ran run_train(const std::string& arguments) {
  return run_program(SCONCE_BIN_DIR "/sconce-train " + arguments);
}

}  // namespace sconce::test
