#pragma once

#include <functional>
#include <future>
#include <latch>
#include <string>
#include <vector>

#include "catch.hpp"

namespace sconce::test {

/// One use of objects that are shared between threads. `is_right` returns whether the result is
/// correct.
struct Use {
  std::string what;
  std::function<bool()> is_right;
};

/// Runs each use twice in each of four concurrent threads, and checks every result. A build with
/// ThreadSanitizer also detects data races.
inline void check_at_once(const std::vector<Use>& uses) {
  constexpr int threads = 4;
  // LibTorch creates the default generator on first use. The generator is created before the
  // threads start, because ThreadSanitizer does not recognize how LibTorch synchronizes this
  // creation between threads.
  torch::manual_seed(0);
  for (const auto& [what, is_right] : uses) {
    INFO(what);
    std::latch start(threads);
    const auto work = [&start, &is_right = is_right] {
      start.arrive_and_wait();
      const bool first = is_right();
      return is_right() && first;
    };
    std::vector<std::future<bool>> results;
    for (int i = 0; i < threads; ++i) results.push_back(std::async(std::launch::async, work));
    for (auto& result : results) CHECK(result.get());
  }
}

}  // namespace sconce::test
