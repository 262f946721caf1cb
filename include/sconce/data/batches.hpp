#pragma once

#include <cstdint>
#include <utility>

#include "sconce/data/data_loader_options.hpp"
#include "sconce/data/dataset.hpp"
#include "sconce/data/detail/loader_base.hpp"
#include "sconce/data/loop_iterator.hpp"
#include "sconce/data/sampler.hpp"
#include "sconce/fwd.hpp"

namespace sconce::data {

/// Splits a dataset on any device into batches for a range-based for loop:
/// `for (const auto& [data, target] : batches)`. Each batch is a `Dataset` with two tensors of
/// shape `(batch_size, ...)`.
///
/// If `shuffle` is not set and no sampler is given, batches are views of the dataset. Otherwise,
/// each batch contains copies of its rows, which are stored on the dataset's device. If `shuffle`
/// is set, the order is `torch.randperm(n)` drawn from a CPU generator seeded with seed + epoch.
/// The order is the same on every device and in Python, and no other generator is used. With a
/// `DistributedSampler`, all ranks process the same number of batches.
///
/// Each `begin()` starts an independent loop, so loops may be nested or run in several threads.
/// Copying, moving, or destroying this object does not affect running loops. To split one tensor,
/// or more than two tensors, use `TensorBatches`. Python: `torch.utils.data.DataLoader` over a
/// `DistributedSampler` with one replica.
class Batches : public detail::LoaderBase {
 public:
  using Iterator = LoopIterator<Dataset>;  ///< iterator type of a loop

  /// Stores the two tensors without copying them. An empty dataset produces no batches.
  /// @throw c10::Error if:
  /// - a tensor is undefined or 0-dim;
  /// - the tensors differ in their first dimension or device;
  /// - `batch_size` is below 1;
  /// - the sampler was created for a different number of rows, or is combined with `shuffle`.
  explicit Batches(Dataset dataset, BatchesOptions options = {});

  /// Stores the `data` and `target` tensors of a `torch::data::Example<>`.
  template <detail::TorchExample Example>
  explicit Batches(Example dataset, BatchesOptions options = {})
      : Batches(Dataset{std::move(dataset.data), std::move(dataset.target)}, std::move(options)) {}

  /// Does not compile, because `Batches` requires two tensors. Use `TensorBatches` to split a
  /// single tensor.
  template <std::same_as<torch::Tensor> T>
  explicit Batches(const T&, const BatchesOptions& = {}) : Batches(Dataset()) {
    static_assert(!std::same_as<T, T>,
                  "sconce::data::Batches: expected two tensors, {x, y}, got one: write "
                  "sconce::data::TensorBatches(x, {.batch_size = 32})");
  }

  /// Returns the dataset from which the batches are taken. Python: `loader.dataset`.
  const Dataset& dataset() const { return dataset_; }

  /// Starts the next epoch. Epochs are numbered consecutively across all copies of this object,
  /// starting at 0 or at the epoch set by `set_epoch` or the sampler. Several threads may call this
  /// function concurrently. Each call starts a different epoch. If `shuffle` is set or a sampler is
  /// given, each call computes the order once and moves it to the data's device. **With a
  /// `DistributedSampler`, only `set_epoch` advances the epoch**, and a second `begin()` without a
  /// call to `set_epoch` warns once.
  /// Python: `iter(loader)`.
  /// @throw c10::Error if the sampler returns a row outside the dataset.
  Iterator begin() const { return begin(0, take_epoch()); }

  /// Starts epoch `epoch` at batch `batch`, without changing the epoch for the next call to
  /// `begin()`. Use this overload to resume a loop or to inspect a single batch.
  /// @throw c10::Error in the same cases as above, if `batch` is not between 0 and `size()`, or if
  /// `epoch` is negative.
  Iterator begin(int64_t batch, int64_t epoch) const;

 private:
  Dataset dataset_;
};

}  // namespace sconce::data
