#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <functional>

#include "sconce/fwd.hpp"

namespace sconce::data {

/// Chooses the rows of a dataset for an epoch, and their order. `indices()` returns them for the
/// epoch given to `set_epoch`, as int64 `(size(),)` on the CPU. `RandomSampler`,
/// `WeightedRandomSampler` and `DistributedSampler` are samplers.
///
/// A loader sets the epoch in its copy of the sampler at each `begin()`: 0, 1, 2 and so on. A
/// sampler may have two more functions:
/// - `int64_t epoch() const` returns the epoch that a loader begins with, instead of 0;
/// - `bool requires_set_epoch() const` returns whether `begin()` leaves the epoch alone, so that
/// only
///   `set_epoch` moves it. This is for several processes that must agree on the order.
///
/// Python: `torch.utils.data.Sampler`.
template <class S>
concept Sampler = std::copyable<S> && requires(S sampler, const S& read, int64_t epoch) {
  sampler.set_epoch(epoch);
  { read.dataset_size() } -> std::convertible_to<int64_t>;
  { read.size() } -> std::convertible_to<int64_t>;
  { read.indices() } -> std::convertible_to<torch::Tensor>;
};

/// Takes all rows in a random order: `torch.randperm(n)` of a CPU generator seeded with seed +
/// epoch. So the order is the same on every device and in Python, and no other generator is used.
/// Python: `DistributedSampler(dataset, num_replicas=1, rank=0, seed=seed)`.
class RandomSampler {
 public:
  /// @throw c10::Error if `dataset_size` is negative.
  explicit RandomSampler(int64_t dataset_size, uint64_t seed = 0);

  /// Sets the epoch of the next `indices()`, 0 without a call.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  int64_t dataset_size() const { return dataset_size_; }  ///< number of rows of the dataset
  int64_t size() const { return dataset_size_; }          ///< number of rows of an epoch
  int64_t epoch() const { return epoch_; }                ///< epoch of the next `indices()`

  /// Returns the rows of this epoch: int64 `(size(),)` on the CPU.
  torch::Tensor indices() const;

 private:
  int64_t dataset_size_;
  uint64_t seed_;
  int64_t epoch_ = 0;
};

/// Holds a copy of any sampler, or none.
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
          S of_epoch = sampler;
          of_epoch.set_epoch(epoch);
          return of_epoch.indices();
        }) {
    if constexpr (requires { sampler.epoch(); }) epoch_ = sampler.epoch();
    if constexpr (requires { sampler.requires_set_epoch(); })
      requires_set_epoch_ = sampler.requires_set_epoch();
  }

  /// Returns whether it holds a sampler.
  explicit operator bool() const { return static_cast<bool>(indices_); }

  int64_t dataset_size() const { return dataset_size_; }  ///< number of rows of the dataset
  int64_t size() const { return size_; }                  ///< number of rows of an epoch
  int64_t epoch() const { return epoch_; }                ///< epoch that a loader begins with
  bool requires_set_epoch() const {
    return requires_set_epoch_;
  }  ///< whether `set_epoch` alone moves it

  /// Returns the rows of this epoch.
  torch::Tensor indices(int64_t epoch) const { return indices_(epoch); }

 private:
  int64_t dataset_size_ = 0;
  int64_t size_ = 0;
  int64_t epoch_ = 0;
  bool requires_set_epoch_ = false;
  std::function<torch::Tensor(int64_t epoch)> indices_ = {};
};

}  // namespace sconce::data
