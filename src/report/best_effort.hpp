#pragma once

#include <functional>
#include <string>
#include <utility>

namespace sconce {

/// Runs functions that write a report of a training. A failed report must not end the training:
/// the first failure becomes a warning, and later ones are ignored.
class BestEffort {
 public:
  /// The warning begins with `who`, such as "sconce::ScalarLogger".
  explicit BestEffort(std::string who) : who_(std::move(who)) {}

  /// Calls `write`. Returns false if it threw an exception.
  bool run(const std::function<void()>& write);

 private:
  std::string who_;
  bool warned_ = false;
};

}  // namespace sconce
