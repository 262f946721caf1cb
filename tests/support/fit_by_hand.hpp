#pragma once

#include <cstdint>

#include "sconce/amp/grad_scaler.hpp"
#include "sconce/training/fit.hpp"
#include "support/points.hpp"

namespace sconce::test {

// A fit in progress that has no Trainer and cannot be saved.
struct FitByHand final : Fit {
  explicit FitByHand(const FitSetup& setup) : Fit(setup) {}
  RunProgress progress() const override { return {}; }
  void resume(const RunProgress&) override {}
};

// Represents a running fit of `net()` on the CPU without a Trainer, and owns the objects that the
// fit refers to.
struct NetFitByHand {
  NetFitByHand(int max_epochs, int64_t batches, const amp::GradScalerOptions& scaling)
      : scaler(scaling),
        fit({.model = *model,
             .optimizer = optimizer,
             .scaler = scaler,
             .device = torch::kCPU,
             .process_group = group,
             .max_epochs = max_epochs,
             .num_training_batches = batches,
             .accumulate_grad_batches = 1}) {}

  torch::nn::Sequential model = net();
  torch::optim::SGD optimizer{model->parameters(), 0.1};
  amp::GradScaler scaler;
  distributed::ProcessGroup group = {};
  FitByHand fit;
};

}  // namespace sconce::test
