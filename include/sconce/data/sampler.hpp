#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <functional>

#include "sconce/fwd.hpp"

namespace sconce::data {

/// Selects the dataset rows for an epoch and determines their order. `indices()` returns the rows
/// for the epoch passed to `set_epoch`, as an int64 tensor of shape `(size(),)` on the CPU.
/// `RandomSampler`, `WeightedRandomSampler`, and `DistributedSampler` are samplers.
///
/// A loader copies its sampler, and successive calls to the loader's `begin()` set the copy's epoch
/// to 0, 1, 2, and so on. A sampler may define two more functions:
/// - `int64_t epoch() const` returns the loader's first epoch, instead of 0;
/// - `bool requires_set_epoch() const` returns whether the epoch is advanced only by `set_epoch`,
///   and never by `begin()`. Return true if several processes must use the same order.
///
/// Python: `torch.utils.data.Sampler`.
template <class S>
concept Sampler = std::copyable<S> && requires(S sampler, const S& read, int64_t epoch) {
  sampler.set_epoch(epoch);
  { read.dataset_size() } -> std::convertible_to<int64_t>;
  { read.size() } -> std::convertible_to<int64_t>;
  { read.indices() } -> std::convertible_to<torch::Tensor>;
};

/// Selects all rows in random order. The order is the result of `torch.randperm(n)` with a CPU
/// generator seeded with seed + epoch. The order is the same on every device and in Python, and no
/// other generator is used.
/// Python: `DistributedSampler(dataset, num_replicas=1, rank=0, seed=seed)`.
class RandomSampler {
 public:
  /// Constructs a sampler for `dataset_size` rows.
  /// @throw c10::Error if `dataset_size` is negative.
  explicit RandomSampler(int64_t dataset_size, uint64_t seed = 0);

  /// Sets the epoch for the next call to `indices()`. The default is 0.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  int64_t dataset_size() const { return dataset_size_; }  ///< number of rows in the dataset
  int64_t size() const { return dataset_size_; }          ///< number of rows in an epoch
  int64_t epoch() const { return epoch_; }                ///< epoch of the next `indices()`

  /// Returns the rows of the current epoch as an int64 tensor of shape `(size(),)` on the CPU.
  torch::Tensor indices() const;

 private:
  int64_t dataset_size_;
  uint64_t seed_;
  int64_t epoch_ = 0;
};

/// A type-erased copy of a sampler. May be empty.
class AnySampler {
 public:
  AnySampler() = default;

  /// Copies the sampler.
  template <class S>
    requires(!std::same_as<S, AnySampler> && Sampler<S>)
  AnySampler(const S& sampler)
      : dataset_size_(sampler.dataset_size()),
        size_(sampler.size()),
        indices_([sampler](int64_t epoch) -> torch::Tensor {
          S epoch_sampler = sampler;
          epoch_sampler.set_epoch(epoch);
          return epoch_sampler.indices();
        }) {
    if constexpr (requires { sampler.epoch(); }) epoch_ = sampler.epoch();
    if constexpr (requires { sampler.requires_set_epoch(); })
      requires_set_epoch_ = sampler.requires_set_epoch();
  }

  /// Returns whether this object contains a sampler.
  explicit operator bool() const { return static_cast<bool>(indices_); }

  int64_t dataset_size() const { return dataset_size_; }  ///< number of rows in the dataset
  int64_t size() const { return size_; }                  ///< number of rows in an epoch
  int64_t epoch() const { return epoch_; }                ///< a loader's first epoch
  bool requires_set_epoch() const {
    return requires_set_epoch_;
  }  ///< whether only `set_epoch` advances the epoch

  /// Returns the rows for `epoch`.
  torch::Tensor indices(int64_t epoch) const { return indices_(epoch); }

 private:
  int64_t dataset_size_ = 0;
  int64_t size_ = 0;
  int64_t epoch_ = 0;
  bool requires_set_epoch_ = false;
  std::function<torch::Tensor(int64_t epoch)> indices_ = {};
};

}  // namespace sconce::data
