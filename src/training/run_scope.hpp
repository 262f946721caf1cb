#pragma once

#include <functional>
#include <vector>

#include "sconce/amp/grad_scaler.hpp"
#include "sconce/training/metrics.hpp"

namespace sconce {

/// The scope of a run: a fit, an epoch, or an evaluation. Runs of any trainers in any threads may
/// use the same metric or the same scaler, for example an evaluation in a callback of a fit. The
/// run that started first keeps its sums and its scale, and later runs restore them at the end of
/// their scopes. A scaler that no other run uses starts a new iteration, because an exception may
/// have ended an earlier run between `unscale_` and `update`.
class RunScope {
 public:
  /// Evaluations do not use a scaler. The scope must end before the scaler is destroyed.
  explicit RunScope(const Metrics& metrics, amp::GradScaler* scaler = nullptr);
  ~RunScope();
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

  /// Ends the scope, and throws any error from restoring state.
  void close();

 private:
  RunScope() = default;  // lets an exception in the other constructor end the scope
  bool begin_use(int& runs);

  std::vector<int*> counts_ = {};                      // per object: the number of runs that use it
  std::vector<std::function<void()>> restorers_ = {};  // for objects that an earlier run uses
};

}  // namespace sconce
