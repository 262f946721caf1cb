#pragma once

#include <functional>
#include <string>
#include <utility>

namespace sconce {

/// Runs functions that write a report of a training. A report that fails must not end the training:
/// the first failure is a warning, later ones are silent.
class BestEffort {
 public:
  /// `who` begins the warning, such as "sconce::ScalarLog".
  explicit BestEffort(std::string who) : who_(std::move(who)) {}

  /// Returns whether `write` succeeded, that is, threw nothing.
  bool run(const std::function<void()>& write);

 private:
  std::string who_;
  bool warned_ = false;
};

}  // namespace sconce
