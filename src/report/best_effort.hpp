#pragma once

#include <functional>
#include <string>
#include <utility>

namespace sconce {

/// Runs functions that write reports about training. A failed report must not stop training.
/// Therefore, the first failure causes a warning, and later failures are ignored.
class BestEffort {
 public:
  /// `caller` is the prefix of the warning, such as "sconce::ScalarLogger".
  explicit BestEffort(std::string caller) : caller_(std::move(caller)) {}

  /// Calls `write`. Returns false if it threw an exception.
  bool run(const std::function<void()>& write);

 private:
  std::string caller_;
  bool warned_ = false;
};

}  // namespace sconce
