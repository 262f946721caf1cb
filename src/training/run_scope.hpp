#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "sconce/amp/grad_scaler.hpp"
#include "sconce/training/metrics.hpp"

namespace sconce {

/// The scope of a fit, an epoch or an evaluation. If another one under way, of any trainer in any
/// thread, has the same metric or the same scaler, its state is put back at the end of the scope:
/// the other one goes on with its own sums and its own scale. Else the scaler begins a new
/// iteration: an exception may have ended a run between `unscale_` and `update`.
class RunScope {
 public:
  /// Evaluations have no scaler. The scope must end before the scaler does.
  explicit RunScope(const Metrics& metrics, amp::GradScaler* scaler = nullptr) : RunScope() {
    for (const auto& [name, metric] : metrics) {
      if (!enter(metric.get())) continue;
      put_back_.emplace_back([shared = metric, sums = metric->sums()] { shared->set_sums(sums); });
    }
    if (scaler == nullptr || !scaler->is_enabled()) return;
    if (!enter(scaler)) {
      scaler->forget_iteration();
      return;
    }
    put_back_.emplace_back(
        [scaler, state = scaler->state_dict()] { scaler->load_state_dict(state); });
  }
  ~RunScope() {
    try {
      close();
    } catch (...) {  // the error that ended the run is the one that users see
    }
  }
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;

  void close() {
    {
      const std::scoped_lock lock(mutex_);
      for (const void* object : entered_) under_way_.erase(under_way_.find(object));
    }
    entered_.clear();
    for (const auto& put_back : std::exchange(put_back_, {})) put_back();
  }

 private:
  RunScope() = default;

  // Returns whether another run under way has the object. One metric may have two names.
  bool enter(const void* object) {
    if (std::find(entered_.begin(), entered_.end(), object) != entered_.end()) return false;
    const std::scoped_lock lock(mutex_);
    const bool is_shared = under_way_.contains(object);
    entered_.push_back(object);
    under_way_.insert(object);
    return is_shared;
  }

  inline static std::mutex mutex_ = {};
  inline static std::multiset<const void*> under_way_ = {};
  std::vector<const void*> entered_ = {};
  std::vector<std::function<void()>> put_back_ = {};
};

}  // namespace sconce
