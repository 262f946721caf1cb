#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sconce/fwd.hpp"

namespace sconce::data {

/// The arguments of `torch.utils.data.WeightedRandomSampler`, with Python's names and defaults.
struct WeightedRandomSamplerOptions {
  bool replacement = true;  ///< whether a row may be drawn more than once in an epoch
  uint64_t seed = 0;        ///< seed of the draws, together with the epoch
};

/// Draws rows of a dataset with probabilities given by weights, again in each epoch. If the weight
/// of each row is 1 / (number of rows of its class), all classes come equally often. It uses its
/// own CPU generator, seeded with seed + epoch, and no other.
/// `Batches(dataset, {.batch_size = 64, .sampler = sampler})` makes batches of the rows.
/// Python: `torch.utils.data.WeightedRandomSampler` with a generator of this seed.
class WeightedRandomSampler {
 public:
  /// Copies `weights`, `(dataset_size,)` of any floating or integer type and on any device. They
  /// need not sum to 1. `num_samples` is the number of rows to draw.
  /// @throw c10::Error if:
  /// - `weights` is undefined, not one-dimensional, empty, complex or longer than LibTorch's limit
  ///   of 2^24;
  /// - a weight is negative or not finite, or all weights are 0;
  /// - `num_samples` is below 1 or, without replacement, above the number of weights that are not
  ///   0.
  WeightedRandomSampler(const torch::Tensor& weights, int64_t num_samples,
                        WeightedRandomSamplerOptions options = {});

  /// Sets the epoch of the next `indices()`, 0 without a call.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  /// Returns the number of rows of the whole dataset. Python: `len(sampler.weights)`.
  int64_t dataset_size() const { return weights_.size(0); }

  /// Returns the number of rows drawn per epoch. Python: `len(sampler)`.
  int64_t size() const { return num_samples_; }

  /// Returns the epoch of the next `indices()`.
  int64_t epoch() const { return epoch_; }

  /// Returns the rows of this epoch: int64 `(size(),)` on the CPU. Python: `list(sampler)`.
  torch::Tensor indices() const;

 private:
  torch::Tensor weights_;  // float64 on the CPU
  int64_t num_samples_;
  WeightedRandomSamplerOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace sconce::data
