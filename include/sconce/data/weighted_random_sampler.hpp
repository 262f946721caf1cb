#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sconce/fwd.hpp"

namespace sconce::data {

/// Options for `WeightedRandomSampler`, with the same names and defaults as in Python.
struct WeightedRandomSamplerOptions {
  bool replacement = true;  ///< whether a row may be drawn more than once in an epoch
  uint64_t seed = 0;        ///< seed of the draws, combined with the epoch
};

/// Samples rows of a dataset with probabilities proportional to the given weights. New rows are
/// drawn in each epoch. If the weight of each row is 1 / (number of rows in its class), all classes
/// are equally likely. The rows are drawn with a separate CPU generator seeded with seed + epoch,
/// and no other generator is used. To split the rows into batches, use
/// `Batches(dataset, {.batch_size = 64, .sampler = sampler})`.
/// Python: `torch.utils.data.WeightedRandomSampler` with an identically seeded generator.
class WeightedRandomSampler {
 public:
  /// Copies `weights`, a `(dataset_size,)` tensor of any floating-point or integer type, on any
  /// device. The weights do not have to sum to 1. `num_samples` is the number of rows to draw.
  /// @throw c10::Error if:
  /// - `weights` is undefined, not one-dimensional, empty, complex, or longer than LibTorch's limit
  ///   of 2^24;
  /// - a weight is negative or not finite, or all weights are 0;
  /// - `num_samples` is below 1 or, without replacement, above the number of nonzero weights.
  WeightedRandomSampler(const torch::Tensor& weights, int64_t num_samples,
                        WeightedRandomSamplerOptions options = {});

  /// Sets the epoch for the next call to `indices()`. The default is 0.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  /// Returns the number of rows in the whole dataset. Python: `len(sampler.weights)`.
  int64_t dataset_size() const { return weights_.size(0); }

  /// Returns the number of rows drawn per epoch. Python: `len(sampler)`.
  int64_t size() const { return num_samples_; }

  /// Returns the epoch for the next call to `indices()`.
  int64_t epoch() const { return epoch_; }

  /// Returns the rows of the current epoch as an int64 tensor of shape `(size(),)` on the CPU.
  /// Python: `list(sampler)`.
  torch::Tensor indices() const;

 private:
  torch::Tensor weights_;  // float64 on the CPU
  int64_t num_samples_;
  WeightedRandomSamplerOptions options_;
  int64_t epoch_ = 0;
};

}  // namespace sconce::data
