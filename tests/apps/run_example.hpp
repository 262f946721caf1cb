#pragma once

#include <algorithm>
#include <string>

#include "apps/run_train.hpp"
#include "catch.hpp"

namespace sconce::test {

/// Runs an example in a folder, on the CPU, waits for it and returns what it did.
inline Ran run_example(const std::filesystem::path& folder, const std::string& command) {
  return run_program("cd '" + folder.string() +
                     "' && env CUDA_VISIBLE_DEVICES= " SCONCE_BIN_DIR "/examples/" + command);
}

/// Checks that a program ended with this exit code, and with one line that contains `why`.
inline void check_refused(const Ran& ran, int exit_code, const std::string& why) {
  CHECK(ran.exit_code == exit_code);
  CHECK(ran.out.empty());
  CHECK_THAT(ran.err, Catch::Matchers::ContainsSubstring(why));
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
}

}  // namespace sconce::test
