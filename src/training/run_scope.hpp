#pragma once

#include <functional>
#include <vector>

#include "sconce/amp/grad_scaler.hpp"
#include "sconce/training/metrics.hpp"

namespace sconce {

/// The scope of a run: a fit, an epoch, or an evaluation. Runs of different trainers, in different
/// threads, may use the same metric or scaler. For example, a callback of a fit may run an
/// evaluation. The run that started first keeps its sums and its scale, because later runs restore
/// them at the end of their scopes. If no other run uses a scaler, the scaler starts a new
/// iteration, because an exception may have ended an earlier run between `unscale_` and `update`.
class RunScope {
 public:
  /// Evaluations do not use a scaler. The scope must end before the scaler is destroyed.
  explicit RunScope(const Metrics& metrics, amp::GradScaler* scaler = nullptr);
  ~RunScope();
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

  /// Ends the scope, and throws any error that occurs while restoring state.
  void close();

 private:
  RunScope() = default;  // if the other constructor throws, the destructor runs
  bool begin_use(int& runs);

  std::vector<int*> counts_ = {};                      // for each object, the number of its runs
  std::vector<std::function<void()>> restorers_ = {};  // for objects used by an earlier run
};

}  // namespace sconce
