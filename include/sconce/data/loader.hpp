#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

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

#include "sconce/data/batch_reader.hpp"
#include "sconce/data/collate.hpp"
#include "sconce/data/copy_stream.hpp"
#include "sconce/data/item_source.hpp"
#include "sconce/data/read_ahead.hpp"
#include "sconce/data/sampler.hpp"
#include "sconce/fwd.hpp"
#include "sconce/nn/nested_tensors.hpp"

namespace sconce::data {

/// How a `Loader` makes batches; names and defaults are those of `torch.utils.data.DataLoader`.
struct LoaderOptions {
  int64_t batch_size = 1;   ///< items a batch, 1 or more; the last of an epoch may be shorter
  bool shuffle = false;     ///< items in the order of `RandomSampler(size, seed)`
  AnySampler sampler = {};  ///< chooses the items and their order; none: all as they come
  bool drop_last = false;   ///< leaves out a last batch that is shorter than `batch_size`
  uint64_t seed = 0;        ///< of `shuffle`, and of what sources draw
  int num_workers = 0;      ///< threads that read ahead; 0: the loop reads each batch itself
  int prefetch_factor = 2;  ///< batches, made or in the making, a worker is ahead of the loop

  /// Where batches are copied to: to a GPU through pinned memory, on a stream of its own that the
  /// loop's stream waits for. None: they stay where their items are.
  std::optional<torch::Device> device = {};
};

namespace detail {

// What a Loader is whatever its source.
class LoaderBase {
 public:
  /// Chooses the order of the next `begin()`, and what its items draw; a loop that runs keeps its
  /// own. The epoch is 0, or the sampler's, without a call.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  /// Returns the number of batches in an epoch. Python: `len(loader)`.
  int64_t size() const;

  /// Returns what an iterator equals when its epoch is over.
  std::default_sentinel_t end() const { return {}; }

 protected:
  LoaderBase(LoaderOptions options, std::optional<int64_t> source_size);
  EpochItems epoch_items(int64_t first_batch) const;
  const LoaderOptions& options() const { return options_; }

 private:
  LoaderOptions options_;
  int64_t source_size_ = 0;
  std::optional<int64_t> epoch_ = {};
};

}  // namespace detail

/// Makes batches of the items of a source, for a range-for: `for (auto [data, target] : loader)`.
/// With workers, threads read ahead of the loop; the batches are the same for any number of them,
/// in the same order, also where the source draws random numbers: each item has a generator of its
/// own, seeded from seed, epoch and index. At most `num_workers * prefetch_factor` batches wait.
///
/// Each `begin()` has threads of its own, so loops may run within one another or in several
/// threads, and a loader that is copied, moved or gone leaves them alone. Leaving a loop ends its
/// threads after the item that each is at. An exception of an item ends the epoch and reaches the
/// loop as it was thrown, at the batch that the item is in; `failed_item()` tells the item, and the
/// text of a c10::Error does. Python: `torch.utils.data.DataLoader`.
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
  /// The type of a batch: what `collate` returns.
  using Batch = decltype(std::declval<Reader&>().read(std::declval<detail::EpochItems>(), 0, {}));

  /// Takes the source and, in the place of stacking, a function that makes a batch of a
  /// `std::vector` of items; it is called by all workers at once.
  /// @throw c10::Error if `batch_size` or `prefetch_factor` is below 1, `num_workers` below 0, the
  /// sampler is for another number of items or beside `shuffle`, or the source has no size.
  explicit Loader(Source source, LoaderOptions options = {}, Collate collate = {})
      : LoaderBase(std::move(options), source.size()),
        parts_(std::make_shared<Parts>(std::move(source), std::move(collate))) {
    // From there a copy to the GPU needs no other before it.
    if constexpr (std::is_same_v<Collate, Stack>) {
      parts_->collate.pin_memory = this->options().device && this->options().device->is_cuda();
    }
  }

  class Iterator;

  /// Starts an epoch, at its batch of that index: draws the order and starts the workers.
  /// @throw c10::Error if there is no such batch, or the sampler chooses an item that the source
  /// has not.
  Iterator begin(int64_t batch = 0) const;

  /// Returns the source that the items come from. Python: `loader.dataset`.
  const Source& source() const { return parts_->source; }

  /// Returns the item whose `get` threw last, in any loop of this loader or its copies.
  std::optional<int64_t> failed_item() const {
    const int64_t item = parts_->failed_item;
    return item < 0 ? std::nullopt : std::optional(item);
  }

 private:
  // Loops share it, so that they may outlive the loader.
  struct Parts {
    Parts(Source s, Collate c) : source(std::move(s)), collate(std::move(c)) {}
    Source source;
    Collate collate;
    std::atomic<int64_t> failed_item = -1;
  };

  std::shared_ptr<Parts> parts_;
};

/// The place of one loop in its epoch: a C++20 input iterator, whose copies share that place.
template <class Source, class Collate>
class Loader<Source, Collate>::Iterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  /// Returns the batch, after waiting for it.
  /// @throw what an item or the collate function threw; the epoch is over then.
  const Batch& operator*() const { return loop_->batch(); }

  /// Goes to the next batch, and lets go of this one.
  Iterator& operator++() {
    loop_->advance();
    return *this;
  }

  /// As above; an input iterator has no earlier place to give back.
  void operator++(int) { ++*this; }

  /// Whether the epoch is over.
  bool operator==(std::default_sentinel_t) const { return loop_->index == loop_->last; }

 private:
  friend class Loader;

  struct Made {
    Batch batch;
    CopyStream::Wait wait;
  };

  // Of several that share a place, the last one gone ends the threads.
  struct Loop {
    const Batch& batch() {
      if (!current) {
        try {
          current = std::static_pointer_cast<Made>(ahead ? ahead->next() : make(index, {}));
        } catch (...) {
          last = index;
          throw;
        }
        if (current->wait) current->wait();
      }
      return current->batch;
    }

    void advance() {
      if (!current) batch();  // which are taken in their order
      current.reset();
      ++index;
    }

    int64_t index = 0;
    int64_t last = 0;
    ReadAhead::Make make = {};
    std::shared_ptr<Made> current = {};
    std::optional<ReadAhead> ahead = {};
  };

  explicit Iterator(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}

  static ReadAhead::Make maker(const std::shared_ptr<Parts>& parts,
                               const std::shared_ptr<const detail::EpochItems>& epoch,
                               const LoaderOptions& options);

  std::shared_ptr<Loop> loop_;
};

template <class Source, class Collate>
auto Loader<Source, Collate>::begin(int64_t batch) const -> Iterator {
  const auto epoch = std::make_shared<const detail::EpochItems>(epoch_items(batch));
  const int workers = options().num_workers;
  const auto make = [&] { return Iterator::maker(parts_, epoch, options()); };
  auto loop = std::make_shared<typename Iterator::Loop>();
  loop->index = batch;
  loop->last = size();
  if (workers == 0) {
    loop->make = make();
  } else if (batch < size()) {
    std::vector<ReadAhead::Make> makers;
    for (int i = 0; i < workers; ++i) makers.push_back(make());
    loop->ahead.emplace(std::move(makers), int64_t(workers) * options().prefetch_factor, batch,
                        size());
  }
  return Iterator(std::move(loop));
}

template <class Source, class Collate>
ReadAhead::Make Loader<Source, Collate>::Iterator::maker(
    const std::shared_ptr<Parts>& parts, const std::shared_ptr<const detail::EpochItems>& epoch,
    const LoaderOptions& options) {
  auto reader = std::make_shared<Reader>(parts->source, parts->collate, parts->failed_item);
  std::optional<CopyStream> copies;
  if (options.device) copies.emplace(*options.device);
  return [parts, epoch, reader, copies](int64_t index,
                                        const std::stop_token& stop) -> std::shared_ptr<void> {
    auto made = std::make_shared<Made>(Made{reader->read(*epoch, index, stop), {}});
    if (copies) {
      std::vector<torch::Tensor*> tensors;
      nn::for_each_tensor(made->batch, [&](torch::Tensor& tensor) {
        if (tensor.defined()) tensors.push_back(&tensor);
      });
      made->wait = copies->copy(tensors);
    }
    return made;
  };
}

}  // namespace sconce::data
