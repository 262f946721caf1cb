#pragma once

#include <functional>
#include <string>

namespace sconce {

/// Runs what writes a report of a training, which is not to be lost for it: of the first failure it
/// warns, and goes on.
class BestEffort {
 public:
  /// `who` begins the warning, such as "sconce::ScalarLog".
  explicit BestEffort(std::string who) : who_(std::move(who)) {}

  /// Returns whether `write` came to its end; what it throws is warned of, but once.
  bool run(const std::function<void()>& write);

 private:
  std::string who_;
  bool warned_ = false;
};

}  // namespace sconce
