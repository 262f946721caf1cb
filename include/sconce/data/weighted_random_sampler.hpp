#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sconce/fwd.hpp"

namespace sconce::data {

/// The arguments of `torch.utils.data.WeightedRandomSampler`, with Python's names and defaults.
struct WeightedRandomSamplerOptions {
  bool replacement = true;  ///< a row may be drawn more than once in an epoch
  uint64_t seed = 0;        ///< with the epoch, what the draws depend on
};

/// Draws rows of a data set by their weights, anew in each epoch: with the weight 1 / (rows of its
/// class) for each row all classes come equally often. It draws from a CPU generator of its own,
/// seeded with seed + epoch, and touches no other.
/// `Batches(dataset, sampler, {.batch_size = 64})` cuts them into batches.
/// Python: `torch.utils.data.WeightedRandomSampler`, given such a generator.
class WeightedRandomSampler {
 public:
  /// Takes a copy of `weights`, (dataset_size,) of any floating or integer type and on any device,
  /// which need not sum to 1, and how many rows to draw.
  /// @throw c10::Error if `weights` is undefined, not one-dimensional, empty, longer than 2^24,
  /// which is LibTorch's bound, or complex, if a weight is negative or not finite or all are 0, if
  /// `num_samples` is below 1, or without replacement above the number of weights that are not 0.
  WeightedRandomSampler(const torch::Tensor& weights, int64_t num_samples,
                        WeightedRandomSamplerOptions options = {});

  /// Chooses the epoch of the next `indices()`; 0 without a call.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  /// The number of rows of the whole data set. Python: `len(sampler.weights)`.
  int64_t dataset_size() const { return weights_.size(0); }

  /// The number of rows drawn. Python: `len(sampler)`.
  int64_t size() const { return num_samples_; }

  /// The rows of this epoch: int64 `(size(),)` on the CPU. Python: `list(sampler)`.
  torch::Tensor indices() const;

 private:
  torch::Tensor weights_;  // float64 on the CPU
  int64_t num_samples_;
  WeightedRandomSamplerOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace sconce::data
