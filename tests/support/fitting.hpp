#pragma once

// Fits a small network for callback tests.

#include <utility>

#include "sconce/training/trainer.hpp"
#include "support/points.hpp"

namespace sconce::test {

// The model, optimizer, and data for one fit. Fits run on the CPU unless the options specify a
// device.
template <class Optimizer = torch::optim::SGD>
struct Fitting {
  explicit Fitting(Callbacks callbacks = {}, FitData given = data(), double lr = 0.1)
      : optimizer(model->parameters(), lr), with(std::move(given)) {
    with.callbacks = std::move(callbacks);
  }

  FitResult fit(TrainerOptions options = {}) {
    if (!options.device && !options.num_gpus) options.num_gpus = 0;
    return Trainer(std::move(options)).fit(model, optimizer, with);
  }
  torch::Tensor weight() const { return model->parameters()[0].detach(); }

  torch::nn::Sequential model = net();
  Optimizer optimizer;
  FitData with;
};

}  // namespace sconce::test
