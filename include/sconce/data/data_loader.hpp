#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/data/collate.hpp"
#include "sconce/data/data_loader_options.hpp"
#include "sconce/data/detail/batch_reader.hpp"
#include "sconce/data/detail/copy_stream.hpp"
#include "sconce/data/detail/loader_base.hpp"
#include "sconce/data/detail/loader_loop.hpp"
#include "sconce/data/item_source.hpp"
#include "sconce/data/loop_iterator.hpp"
#include "sconce/fwd.hpp"
#include "sconce/nn/tensor_tree.hpp"

namespace sconce::data {

/// Combines the items of a source into batches for a range-based for loop: `for (const auto& [data,
/// target] : loader)`. Worker threads prefetch batches. The batches and their order do not depend
/// on the number of workers, even if the source draws random numbers. Each item uses a separate
/// generator seeded from the seed, the epoch, and the item's index. At most `num_workers *
/// prefetch_factor` batches are prefetched.
///
/// Each `begin()` starts its own threads, so loops may be nested or run in several threads.
/// Copying, moving, or destroying the loader does not affect running loops. If you exit a loop
/// early, each thread stops after its current item. An exception thrown by the source or by the
/// collate function ends the epoch. The loop rethrows the exception unchanged when it reaches the
/// failed batch, and again on every later read. The iterator's `failed_item()` returns the failed
/// item's index, and the message of a c10::Error includes the index.
/// Python: `torch.utils.data.DataLoader`.
template <class Source, class Collate = Stack>
class DataLoader : public detail::LoaderBase {
  static_assert(ItemSource<Source> || TorchDataset<Source>,
                "sconce::data::DataLoader: expected a source with `size() const`, and `get(index) "
                "const` or `get(index, at::Generator) const` that returns tensors, or a "
                "torch::data dataset whose get_batch accepts indices; for a stream, which has "
                "next(), use sconce::data::StreamLoader");
  static_assert(!StatefulTorchDataset<Source>,
                "sconce::data::DataLoader: expected a dataset that can return any item at any "
                "time, got a stateful dataset");
  using Reader = detail::BatchReader<Source, Collate>;

 public:
  /// Type of a batch, which is the return type of `collate`.
  using Batch = decltype(std::declval<Reader&>().read(std::declval<detail::EpochItems>(), 0, {}));

  /// Constructs a loader over `source`. `collate` combines a `std::vector` of items into a batch.
  /// By default, `collate` stacks the items. Workers call `collate` concurrently.
  /// @throw c10::Error if:
  /// - `batch_size` or `prefetch_factor` is below 1, or `num_workers` is below 0;
  /// - the sampler was created for a different number of items, or is combined with `shuffle`;
  /// - the source has no size.
  explicit DataLoader(Source source, DataLoaderOptions options = {}, Collate collate = {})
      : LoaderBase("sconce::data::DataLoader", std::move(options), source.size()),
        parts_(std::make_shared<Parts>(std::move(source), std::move(collate))) {
    // Stacking into pinned memory avoids another copy before the transfer to the GPU.
    if constexpr (std::is_same_v<Collate, Stack>) {
      parts_->collate.pin_memory = this->options().device && this->options().device->is_cuda();
    }
  }

  using Iterator = LoopIterator<Batch>;  ///< iterator type of a loop

  /// Starts the next epoch, like `Batches::begin()`. Draws the order of the items and starts the
  /// workers. **With a `DistributedSampler`, only `set_epoch` advances the epoch.**
  /// @throw c10::Error if the sampler returns an index outside the source.
  Iterator begin() const { return begin(0, take_epoch()); }

  /// Starts epoch `epoch` at batch `batch`, without changing the epoch for the next call to
  /// `begin()`.
  /// @throw c10::Error in the same cases as above, if `batch` is out of range, or if `epoch` is
  /// negative.
  Iterator begin(int64_t batch, int64_t epoch) const;

  /// Returns the item source. Python: `loader.dataset`.
  const Source& dataset() const { return parts_->source; }

  /// Returns the index of the item that caused the most recent exception in any loop over this
  /// loader or its copies. After a range-based for loop, if no other loops are running, this
  /// function returns the index of the item whose exception ended the loop. Returns `std::nullopt`
  /// if no loop has thrown, or if the exception was not thrown by an item's `get`. If several loops
  /// run concurrently, call `failed_item()` on the iterator instead.
  std::optional<int64_t> failed_item() const {
    const int64_t item = parts_->failed_item;
    return item < 0 ? std::nullopt : std::optional(item);
  }

 private:
  // State shared with the loops, which may outlive the loader.
  struct Parts {
    Parts(Source s, Collate c) : source(std::move(s)), collate(std::move(c)) {}
    Source source;
    Collate collate;
    std::atomic<int64_t> failed_item = -1;
    detail::CopyStreams streams = {};
  };

  std::shared_ptr<Parts> parts_;
};

template <class Source, class Collate>
auto DataLoader<Source, Collate>::begin(int64_t batch, int64_t epoch_index) const -> Iterator {
  const auto epoch = std::make_shared<const detail::EpochItems>(epoch_items(batch, epoch_index));
  const int workers = options().num_workers;
  const detail::CopyStream* copies = nullptr;  // kept alive by the workers' references to `parts_`
  if (options().device) copies = &parts_->streams.to(*options().device);
  std::vector<detail::LoaderLoop::Make> makers(static_cast<size_t>(std::max(workers, 1)));
  for (auto& make : makers) {
    const auto reader = std::make_shared<Reader>(parts_->source, parts_->collate);
    make = [parts = parts_, epoch, reader, copies](int64_t index, const std::stop_token& stop) {
      Batch made = reader->read(*epoch, index, stop);
      if (!copies) return detail::wrap_batch(std::move(made));
      auto wait = copies->copy_batch(made);
      return detail::wrap_batch(std::move(made), std::move(wait));
    };
  }
  return Iterator(std::move(makers), {.first = batch,
                                      .last = size(),
                                      .epoch = epoch_index,
                                      .ahead = int64_t(workers) * options().prefetch_factor,
                                      .failed_item = {parts_, &parts_->failed_item}});
}

}  // namespace sconce::data
