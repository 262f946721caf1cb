#include "training/run_scope.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace sconce {

namespace {

std::mutex counts_mutex;  // runs may start and end in several threads

}  // namespace

RunScope::RunScope(const Metrics& metrics, amp::GradScaler* scaler) : RunScope() {
  for (const auto& [name, metric] : metrics) {
    if (!begin_use(metric->runs_)) continue;
    restorers_.emplace_back([shared = metric, sums = metric->sums()] { shared->set_sums(sums); });
  }
  if (scaler == nullptr || !scaler->is_enabled()) return;
  if (begin_use(scaler->runs_)) {
    restorers_.emplace_back(
        [scaler, state = scaler->state_dict()] { scaler->load_state_dict(state); });
  } else {
    scaler->forget_iteration();
  }
}

RunScope::~RunScope() {
  try {
    close();
  } catch (...) {  // report the error that ended the run
  }
}

void RunScope::close() {
  {
    const std::scoped_lock lock(counts_mutex);
    for (int* runs : std::exchange(counts_, {})) --*runs;
  }
  for (const auto& restore : std::exchange(restorers_, {})) restore();
}

// Counts each object only once per run, because the same metric may be registered under two names.
// Returns whether another run is using the object.
bool RunScope::begin_use(int& runs) {
  if (std::find(counts_.begin(), counts_.end(), &runs) != counts_.end()) return false;
  counts_.push_back(&runs);
  const std::scoped_lock lock(counts_mutex);
  const bool is_shared = runs > 0;
  ++runs;
  return is_shared;
}

}  // namespace sconce
