#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/data/collate.hpp"
#include "sconce/data/detail/batch_reader.hpp"
#include "sconce/data/detail/copy_stream.hpp"
#include "sconce/data/detail/epoch_count.hpp"
#include "sconce/data/detail/loader_loop.hpp"
#include "sconce/data/detail/read_ahead.hpp"
#include "sconce/data/item_source.hpp"
#include "sconce/data/sampler.hpp"
#include "sconce/fwd.hpp"
#include "sconce/nn/nested_tensors.hpp"

namespace sconce::data {

/// Options of a `Loader`. Names and defaults are those of `torch.utils.data.DataLoader`.
struct LoaderOptions {
  int64_t batch_size = 1;   ///< items per batch, at least 1; the last batch may be shorter
  bool shuffle = false;     ///< whether to use the order of `RandomSampler(size, seed)`
  AnySampler sampler = {};  ///< chooses items and order; none: all items in their own order
  bool drop_last = false;   ///< whether to drop a last batch shorter than `batch_size`
  uint64_t seed = 0;        ///< seed of `shuffle` and of the generators of items
  int num_workers = 0;      ///< number of reading threads; 0: the loop reads each batch itself
  int prefetch_factor = 2;  ///< batches per worker that are made ahead of the loop

  /// Device to copy batches to. Copies to a GPU use pinned memory and a separate stream, which the
  /// loop's stream waits for. None: batches stay on the device of their items.
  std::optional<torch::Device> device = {};
};

namespace detail {

// The part of a Loader that does not depend on its source.
class LoaderBase {
 public:
  /// Sets the epoch of the next `begin()`, also in the copies of this loader. The epoch determines
  /// the order and the generators of the items. A running loop keeps its own.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  /// Returns the number of batches in an epoch. Python: `len(loader)`.
  int64_t size() const;

  /// Returns the sentinel that an iterator equals at the end of its epoch.
  std::default_sentinel_t end() const { return {}; }

 protected:
  LoaderBase(LoaderOptions options, std::optional<int64_t> source_size);
  int64_t take_epoch() const { return epochs_.take(); }
  EpochItems epoch_items(int64_t first_batch, int64_t epoch) const;
  const LoaderOptions& options() const { return options_; }

 private:
  LoaderOptions options_;
  int64_t source_size_ = 0;
  EpochCount epochs_ = EpochCount("sconce::data::Loader");
};

}  // namespace detail

/// Makes batches of the items of a source, for a range-for: `for (auto [data, target] : loader)`.
/// Worker threads read ahead of the loop. The batches and their order are the same for any number
/// of workers, even if the source draws random numbers: each item has its own generator, seeded
/// from the seed, the epoch and its index. At most `num_workers * prefetch_factor` batches wait.
///
/// Each `begin()` has its own threads, so loops may be nested or run in several threads, and are
/// not affected if the loader is copied, moved or destroyed. Leaving a loop stops each thread after
/// its current item. An exception of an item or of the collate function ends the epoch. The loop
/// gets it at its batch, as it was thrown, and again if it reads on. `failed_item()` of the
/// iterator returns the item, and the text of a c10::Error names it. Python:
/// `torch.utils.data.DataLoader`.
template <class Source, class Collate = Stack>
class Loader : public detail::LoaderBase {
  static_assert(ItemSource<Source> || TorchDataset<Source>,
                "sconce::data::Loader: expected a source with `size() const`, and `get(index) "
                "const` or `get(index, at::Generator) const` that returns tensors, or a dataset of "
                "torch::data whose get_batch takes indices");
  static_assert(!StatefulTorchDataset<Source>,
                "sconce::data::Loader: expected a dataset that gives any item at any time, got a "
                "stateful one");
  using Reader = detail::BatchReader<Source, Collate>;

 public:
  /// Type of a batch: the return type of `collate`.
  using Batch = decltype(std::declval<Reader&>().read(std::declval<detail::EpochItems>(), 0, {}));

  /// Takes the source and a function that makes a batch of a `std::vector` of items, by default by
  /// stacking. All workers call this function at once.
  /// @throw c10::Error if:
  /// - `batch_size` or `prefetch_factor` is below 1, or `num_workers` is below 0;
  /// - the sampler is for a different number of items, or is used with `shuffle`;
  /// - the source has no size.
  explicit Loader(Source source, LoaderOptions options = {}, Collate collate = {})
      : LoaderBase(std::move(options), source.size()),
        parts_(std::make_shared<Parts>(std::move(source), std::move(collate))) {
    // Stacking into pinned memory saves a second copy before the copy to the GPU.
    if constexpr (std::is_same_v<Collate, Stack>) {
      parts_->collate.pin_memory = this->options().device && this->options().device->is_cuda();
    }
  }

  class Iterator;

  /// Starts the next epoch, as `Batches::begin()` does: draws the order and starts the workers.
  /// **With a `DistributedSampler` only `set_epoch` moves the epoch.**
  /// @throw c10::Error if the sampler chooses an item outside the source.
  Iterator begin() const { return begin(0, take_epoch()); }

  /// Starts this epoch at the batch with this index, and leaves the epoch of the next `begin()`
  /// alone.
  /// @throw c10::Error as above, or if there is no such batch or `epoch` is negative.
  Iterator begin(int64_t batch, int64_t epoch) const;

  /// Returns the source that the items come from. Python: `loader.dataset`.
  const Source& source() const { return parts_->source; }

  /// Returns the item of the exception that a loop over this loader or its copies threw last: after
  /// a range-for that was alone, the item of its exception. None if that exception was not of the
  /// `get` of an item, or if no loop threw. With several loops at once, use that of the iterator.
  std::optional<int64_t> failed_item() const {
    const int64_t item = parts_->failed_item;
    return item < 0 ? std::nullopt : std::optional(item);
  }

 private:
  // Shared with the loops, because they may outlive the loader.
  struct Parts {
    Parts(Source s, Collate c) : source(std::move(s)), collate(std::move(c)) {}
    Source source;
    Collate collate;
    std::atomic<int64_t> failed_item = -1;
  };

  std::shared_ptr<Parts> parts_;
};

/// Position of one loop in its epoch: a C++20 input iterator, whose copies share the position. It
/// holds all that it needs, so it may outlive its loader.
template <class Source, class Collate>
class Loader<Source, Collate>::Iterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  /// Waits for the batch and returns it.
  /// @throw the exception of an item or of the collate function. The epoch is over then, and this
  /// function and `++` throw the exception again.
  /// @throw c10::Error if the epoch is over.
  const Batch& operator*() const { return static_cast<const Made&>(loop_->batch()).batch; }

  /// Goes to the next batch and releases this one. Waits for this one if it has not been read.
  /// @throw as `*`.
  Iterator& operator++() {
    loop_->advance();
    return *this;
  }

  /// Goes to the next batch; returns nothing, because an input iterator cannot go back.
  void operator++(int) { ++*this; }

  /// Returns the epoch of this loop.
  int64_t epoch() const { return loop_->epoch(); }

  /// Returns the item of the exception that this loop threw. None: it threw none, or one that was
  /// not of the `get` of an item.
  std::optional<int64_t> failed_item() const { return loop_->failed_item(); }

  /// Returns whether the epoch is over.
  bool operator==(std::default_sentinel_t) const { return loop_->is_over(); }

 private:
  friend class Loader;

  struct Made : detail::MadeBatch {
    explicit Made(Batch made) : batch(std::move(made)) {}
    Batch batch;
  };

  explicit Iterator(std::shared_ptr<detail::LoaderLoop> loop) : loop_(std::move(loop)) {}

  static detail::ReadAhead::Make maker(const std::shared_ptr<Parts>& parts,
                                       const std::shared_ptr<const detail::EpochItems>& epoch,
                                       const LoaderOptions& options);

  std::shared_ptr<detail::LoaderLoop> loop_;  // destroying the last copy ends the threads
};

template <class Source, class Collate>
auto Loader<Source, Collate>::begin(int64_t batch, int64_t of_epoch) const -> Iterator {
  const auto epoch = std::make_shared<const detail::EpochItems>(epoch_items(batch, of_epoch));
  const int workers = options().num_workers;
  std::vector<detail::ReadAhead::Make> makers(static_cast<size_t>(std::max(workers, 1)));
  for (auto& make : makers) make = Iterator::maker(parts_, epoch, options());
  return Iterator(std::make_shared<detail::LoaderLoop>(
      std::move(makers),
      detail::LoaderLoop::Options{.first = batch,
                                  .last = size(),
                                  .epoch = of_epoch,
                                  .ahead = int64_t(workers) * options().prefetch_factor,
                                  .failed_item = {parts_, &parts_->failed_item}}));
}

template <class Source, class Collate>
detail::ReadAhead::Make Loader<Source, Collate>::Iterator::maker(
    const std::shared_ptr<Parts>& parts, const std::shared_ptr<const detail::EpochItems>& epoch,
    const LoaderOptions& options) {
  auto reader = std::make_shared<Reader>(parts->source, parts->collate);
  std::optional<detail::CopyStream> copies;
  if (options.device) copies.emplace(*options.device);
  return [parts, epoch, reader, copies](int64_t index,
                                        const std::stop_token& stop) -> std::shared_ptr<void> {
    auto made = std::make_shared<Made>(reader->read(*epoch, index, stop));
    if (copies) {
      std::vector<torch::Tensor*> tensors;
      nn::for_each_tensor(made->batch, [&](torch::Tensor& tensor) {
        if (tensor.defined()) tensors.push_back(&tensor);
      });
      made->wait = copies->copy(tensors);
    }
    return std::static_pointer_cast<detail::MadeBatch>(made);
  };
}

}  // namespace sconce::data
