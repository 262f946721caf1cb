#pragma once

// Defines a task that is quick to learn, for use in training tests.

#include <torch/torch.h>

#include "sconce/training/trainer.hpp"

namespace sconce::test {

// Returns two linearly separable classes: two-dimensional points to the left and right of zero.
inline data::Dataset points(int64_t n, uint64_t seed = 1) {
  torch::manual_seed(seed);
  const auto x = torch::randn({n, 2});
  return {x, x.select(1, 0).gt(0).to(torch::kLong)};
}

inline FitData data(int64_t n = 96, int64_t batch_size = 16) {
  return {data::Batches(points(n), {.batch_size = batch_size, .shuffle = true, .seed = 7}),
          data::Batches(points(40, /*seed=*/2), {.batch_size = 40})};
}

inline torch::nn::Sequential net() {
  torch::manual_seed(0);
  return torch::nn::Sequential(torch::nn::Linear(2, 8), torch::nn::ReLU(), torch::nn::Dropout(0.1),
                               torch::nn::Linear(8, 2));
}

// CPU replicas share a generator, so dropout would make their results vary between runs.
inline torch::nn::Sequential net_without_dropout() {
  torch::manual_seed(0);
  return torch::nn::Sequential(torch::nn::Linear(2, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
}

}  // namespace sconce::test
