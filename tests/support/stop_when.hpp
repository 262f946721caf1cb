#pragma once

#include <functional>
#include <utility>

#include "sconce/training/trainer_callback.hpp"

namespace sconce::test {

// Stops a fit after the first step for which `should_stop` returns true.
struct StopWhen : TrainerCallback {
  explicit StopWhen(std::function<bool()> f) : should_stop(std::move(f)) {}
  void on_after_step(Fit& fit) override {
    if (should_stop()) fit.should_stop = true;
  }
  std::function<bool()> should_stop;
};

}  // namespace sconce::test
