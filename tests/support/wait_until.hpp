#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "catch.hpp"

namespace sconce::test {

/// Waits until the condition is true. Fails the test if that takes longer than a minute.
inline void wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000 && !holds(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  REQUIRE(holds());
}

}  // namespace sconce::test
