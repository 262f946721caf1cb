#pragma once

#include <functional>
#include <vector>

#include "sconce/amp/grad_scaler.hpp"
#include "sconce/training/metrics.hpp"

namespace sconce {

/// The scope of a run: a fit, an epoch or an evaluation. Runs of any trainers in any threads may
/// use the same metric or the same scaler, such as an evaluation in a callback of a fit. The run
/// that began first keeps its sums and its scale: a later one puts them back at the end of its
/// scope. A scaler that no other run uses starts a new iteration, because an exception may have
/// ended an earlier run between `unscale_` and `update`.
class RunScope {
 public:
  /// Evaluations have no scaler. The scope must end before the scaler does.
  explicit RunScope(const Metrics& metrics, amp::GradScaler* scaler = nullptr);
  ~RunScope();
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

  /// Ends the scope, and throws what putting back throws.
  void close();

 private:
  RunScope() = default;  // so that an exception of the other constructor ends the scope
  bool begin_use(int& runs);

  std::vector<int*> counts_ = {};                     // of the objects, how many runs use them
  std::vector<std::function<void()>> put_back_ = {};  // of those that an earlier run uses
};

}  // namespace sconce
