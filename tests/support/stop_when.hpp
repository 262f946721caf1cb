#pragma once

#include <functional>
#include <utility>

#include "sconce/training/trainer_callback.hpp"

namespace sconce::test {

// Stops a fit after the first step for which `should_stop` returns true.
struct StopWhen : TrainerCallback {
  explicit StopWhen(std::function<bool()> f) : should_stop(std::move(f)) {}
  void on_after_optimizer_step(Fit& fit) override {
    if (should_stop()) fit.stop();
  }
  std::function<bool()> should_stop;
};

// Requests a save every `steps` steps within an epoch. At each save, the ranks in a process group
// agree on whether to stop.
struct SaveEvery : TrainerCallback {
  explicit SaveEvery(int64_t given) : steps(given) {}
  bool should_save(const Fit& fit) const override { return fit.steps_in(fit.batch) % steps == 0; }
  int64_t steps;
};

}  // namespace sconce::test
