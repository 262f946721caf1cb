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

/// Splits a dataset on any device into batches for a range-for:
/// `for (const auto& [data, target] : batches)`. Each batch is a `Dataset` with two tensors
/// `(batch_size, ...)`.
///
/// Without `shuffle` or a sampler, a batch is a view of the memory of the dataset. Otherwise it is
/// a copy of its rows, made on their device. With `shuffle` the order is `torch.randperm(n)` of a
/// CPU generator seeded with seed + epoch. So the order is the same on every device and in Python,
/// and no other generator is used. With a `DistributedSampler` all ranks have the same number of
/// batches.
///
/// Each `begin()` is a loop of its own, so loops may be nested or run in several threads, and are
/// not affected if this object is copied, moved or destroyed. `TensorBatches` splits one tensor, or
/// more than two. Python: `torch.utils.data.DataLoader` over a `DistributedSampler` of one replica.
class Batches : public detail::LoaderBase {
 public:
  using Iterator = LoopIterator<Dataset>;  ///< position of one loop

  /// Keeps the two tensors without copying them. A dataset without rows gives no batches.
  /// @throw c10::Error if:
  /// - a tensor is undefined or has no first dimension;
  /// - the two differ in their first dimension or device;
  /// - `batch_size` is below 1;
  /// - the sampler is for a different number of rows, or is used with `shuffle`.
  explicit Batches(Dataset dataset, BatchesOptions options = {});

  /// The same for the two tensors of a `torch::data::Example<>`.
  template <detail::TorchExample Example>
  explicit Batches(Example dataset, BatchesOptions options = {})
      : Batches(Dataset{std::move(dataset.data), std::move(dataset.target)}, std::move(options)) {}

  /// Does not compile: `TensorBatches` splits one tensor.
  template <std::same_as<torch::Tensor> T>
  explicit Batches(const T&, const BatchesOptions& = {}) : Batches(Dataset()) {
    static_assert(!std::same_as<T, T>,
                  "sconce::data::Batches: expected two tensors, {x, y}, got one: write "
                  "sconce::data::TensorBatches(x, {.batch_size = 32})");
  }

  /// Returns the dataset that the batches come from. Python: `loader.dataset`.
  const Dataset& dataset() const { return dataset_; }

  /// Starts the next epoch: 0, 1, 2 and so on, counted over all copies of this object, or from that
  /// of `set_epoch` or of the sampler on. Several threads may call it at once, and each gets an
  /// epoch of its own. With `shuffle` or a sampler it draws the order once and moves it to the
  /// device of the data. **With a `DistributedSampler` only `set_epoch` moves the epoch**; a second
  /// `begin()` without it warns, once. Python: `iter(loader)`.
  /// @throw c10::Error if the sampler chooses a row outside the dataset.
  Iterator begin() const { return begin(0, take_epoch()); }

  /// Starts this epoch at the batch with this index, and leaves the epoch of the next `begin()`
  /// alone: to resume a loop, or to look at a batch.
  /// @throw c10::Error as above, if `batch` is not in 0 to size(), or if `epoch` is negative.
  Iterator begin(int64_t batch, int64_t epoch) const;

 private:
  Dataset dataset_;
};

}  // namespace sconce::data
