#pragma once

#include <algorithm>
#include <string>

#include "catch.hpp"
#include "support/run_program.hpp"

namespace sconce::test {

/// Checks that a program exited with the given code and printed only one line, an error message
/// that contains `why`.
inline void check_refused(const RunResult& ran, int exit_code, const std::string& why) {
  INFO(ran.err);
  CHECK(ran.exit_code == exit_code);
  CHECK(ran.out.empty());
  CHECK_THAT(ran.err, Catch::Matchers::ContainsSubstring(why));
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 1);
}

}  // namespace sconce::test
