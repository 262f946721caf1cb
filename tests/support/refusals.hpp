#pragma once

// Checks tables of calls that are expected to throw.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/error_of.hpp"

namespace sconce::test {

// A call that is expected to throw, and part of the expected error message.
using Refusal = std::pair<std::function<void()>, std::string>;

inline void check_refusals(const std::vector<Refusal>& refusals) {
  for (const auto& [call, message] : refusals) {
    CHECK_THAT(error_of(call), Catch::Matchers::ContainsSubstring(message));
  }
}

}  // namespace sconce::test
