#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/data/collate.hpp"
#include "sconce/data/data_loader_options.hpp"
#include "sconce/data/detail/copy_stream.hpp"
#include "sconce/data/detail/epoch_count.hpp"
#include "sconce/data/detail/loader_loop.hpp"
#include "sconce/data/detail/stream_places.hpp"
#include "sconce/data/detail/stream_reader.hpp"
#include "sconce/data/item_stream.hpp"
#include "sconce/data/loop_iterator.hpp"
#include "sconce/nn/tensor_tree.hpp"

namespace sconce::data {

/// Combines the items of a stream into batches for a range-based for loop or, if
/// `batches_per_epoch` is set, for a Trainer. The batches and their order are the same for any
/// number of workers, because only one thread at a time reads items, in order. The workers collate
/// items into batches in parallel, so do expensive work in the collate function, not in `next()`.
/// Python: `torch.utils.data.DataLoader` over an `IterableDataset`, where each worker reads all
/// items unless the dataset divides them among the workers.
///
/// If `shuffle_buffer` is set, the loader reads `shuffle_buffer` consecutive items at a time and
/// returns them in the order of `torch.randperm(n)` for a generator seeded with `mix_seeds(seed,
/// pass, chunk)`. A resumed `fit` continues at the checkpoint's position.
template <class Stream, class Collate = Stack>
class StreamLoader {
  static_assert(ItemStream<Stream>,
                "sconce::data::StreamLoader: expected a stream that can be copied, with a next() "
                "that returns a std::optional of an item with tensors; for a C++20 range, use "
                "sconce::data::make_stream(range)");
  using Item = detail::StreamItem<Stream>;

 public:
  /// Type of a batch, which is the return type of `collate`.
  using Batch = std::remove_cvref_t<std::invoke_result_t<const Collate&, std::vector<Item>>>;
  using Iterator = LoopIterator<Batch>;  ///< iterator type of a loop

  /// Constructs a loader over `stream`. `collate` combines a `std::vector` of items into a batch.
  /// By default, `collate` stacks the items. Workers call `collate` concurrently.
  /// @throw c10::Error if:
  /// - `batch_size`, `prefetch_factor`, or `num_replicas` is below 1, or another count is negative;
  /// - `rank` is not between 0 and `num_replicas` - 1;
  /// - `drop_last` is set together with `batches_per_epoch`.
  explicit StreamLoader(Stream stream, StreamLoaderOptions options = {}, Collate collate = {})
      : options_((detail::check_stream_options(options), options)),
        parts_(std::make_shared<Parts>(std::move(stream), std::move(collate))) {
    if constexpr (std::is_same_v<Collate, Stack>) {
      parts_->collate.pin_memory = options_.device && options_.device->is_cuda();
    }
  }

  /// Returns `batches_per_epoch`.
  /// @throw c10::Error if it is 0.
  int64_t size() const {
    TORCH_CHECK(options_.batches_per_epoch > 0, "sconce::data::StreamLoader: expected ",
                "batches_per_epoch (a stream has no size), got none");
    return options_.batches_per_epoch;
  }

  /// Starts the next epoch.
  Iterator begin() const { return begin(0, epochs_.take()); }

  /// Starts epoch `epoch` at batch `batch`, without changing the epoch for the next call to
  /// `begin()`. If neither the most recent loop nor the loop restored by `load_state_dict` is at
  /// this position, all items before the position are read again.
  /// @throw c10::Error if `batch` or `epoch` is negative.
  Iterator begin(int64_t batch, int64_t epoch) const;

  /// Sets the epoch for the next call to `begin()` on this loader and its copies.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch) { epochs_.set(epoch); }

  /// Returns the end-of-epoch sentinel for comparison with iterators.
  std::default_sentinel_t end() const { return {}; }

  /// Returns the position of the loop that most recently returned a batch, as a dict. After
  /// `load_state_dict`, a loop that starts at the restored position continues with the next item.
  /// For a `ResumableStream`, the loop rereads only the items that are shuffled together with the
  /// next item.
  /// Python: `StatefulDataLoader.state_dict`.
  c10::IValue state_dict() const { return parts_->places.state_dict(); }

  /// Restores the position of an earlier loop.
  /// @throw c10::Error if `state` was not returned by `state_dict`.
  void load_state_dict(const c10::IValue& state) {
    parts_->places.load_state_dict(state);
    keep(nullptr, {});
  }

 private:
  // State shared by the workers of a loop.
  struct Loop {
    std::mutex mutex = {};
    std::condition_variable_any turn = {};
    int64_t next = 0;  // the batch whose items are read next
    bool has_failed = false;
    std::optional<detail::StreamReader<Stream>> reader = {};
  };

  // State shared with the loops, which may outlive the loader.
  struct Parts {
    Parts(Stream s, Collate c) : stream(std::move(s)), collate(std::move(c)) {}
    const Stream stream;
    Collate collate;
    detail::StreamPlaces places = {};
    detail::CopyStreams streams = {};
    std::mutex mutex = {};
    // A loop whose batches have all been returned, kept for the epoch that continues it.
    std::shared_ptr<Loop> finished = {};
    detail::LoopPosition finished_position = {};
  };

  // The items of a batch, and the position after them.
  struct BatchItems {
    std::vector<Item> items = {};
    detail::StreamPlace place = {};
  };

  // Reads up to `count` items. With batches_per_epoch, restarts the stream when it ends.
  std::vector<Item> read(detail::StreamReader<Stream>& reader, int64_t count) const {
    std::vector<Item> items;
    bool is_empty = false;  // whether the pass has yielded no items yet
    while (std::ssize(items) < count) {
      if (auto item = reader.next()) {
        items.push_back(*std::move(item));
        is_empty = false;
      } else if (options_.batches_per_epoch == 0) {
        break;
      } else {
        TORCH_CHECK(!is_empty, "sconce::data::StreamLoader: expected a stream of at least ",
                    options_.num_replicas, " items, got one that ends earlier");
        reader.next_pass();
        is_empty = true;
      }
    }
    return items;
  }

  // Waits for this batch's turn and reads its items. Returns no items after a stop request, after
  // an error in an earlier batch, or at the end of the epoch.
  BatchItems read_in_turn(Loop& loop, int64_t index, const std::stop_token& stop) const {
    std::unique_lock lock(loop.mutex);
    const auto is_turn = [&] { return loop.next == index || loop.has_failed; };
    if (!loop.turn.wait(lock, stop, is_turn) || loop.has_failed) return {};
    BatchItems batch;
    try {
      batch.items = read(*loop.reader, options_.batch_size);
      batch.place = loop.reader->place();
    } catch (...) {
      loop.has_failed = true;
      loop.turn.notify_all();
      throw;
    }
    if (options_.drop_last && std::ssize(batch.items) < options_.batch_size) batch.items.clear();
    ++loop.next;
    loop.turn.notify_all();
    return batch;
  }

  // If each epoch continues where the previous one ended, positions are counted across epochs.
  detail::LoopPosition position(int64_t batch, int64_t epoch) const {
    if (options_.batches_per_epoch == 0) return {epoch, batch};
    return {0, epoch * options_.batches_per_epoch + batch};
  }

  void keep(const std::shared_ptr<Loop>& finished, detail::LoopPosition at) const {
    const std::lock_guard lock(parts_->mutex);
    parts_->finished = finished;
    parts_->finished_position = at;
  }

  std::shared_ptr<Loop> loop_at(detail::LoopPosition at, int64_t batch) const {
    std::shared_ptr<Loop> loop;
    {
      const std::lock_guard lock(parts_->mutex);
      if (parts_->finished_position == at) loop = std::exchange(parts_->finished, nullptr);
    }
    if (!loop) {
      loop = std::make_shared<Loop>();
      loop->reader.emplace(reader_at(at));
    }
    loop->next = batch;
    return loop;
  }

  detail::StreamReader<Stream> reader_at(detail::LoopPosition at) const {
    if (auto place = parts_->places.find(at)) {
      return {parts_->stream, options_, *std::move(place)};
    }
    detail::StreamReader<Stream> reader(parts_->stream, options_, {.pass = at.epoch});
    for (int64_t i = 0; i < at.batch; ++i) read(reader, options_.batch_size);
    return reader;
  }

  StreamLoaderOptions options_;
  std::shared_ptr<Parts> parts_;
  detail::EpochCount epochs_ = detail::EpochCount("sconce::data::StreamLoader");
};

template <class Stream, class Collate>
auto StreamLoader<Stream, Collate>::begin(int64_t batch, int64_t epoch_index) const -> Iterator {
  const int64_t epoch = epochs_.named(epoch_index);
  const int64_t last = options_.batches_per_epoch == 0 ? detail::unknown_end : size();
  TORCH_CHECK(
      batch >= 0 && batch <= last,
      "sconce::data::StreamLoader::begin: expected a batch index from 0 to batches_per_epoch, got ",
      batch);
  const auto loop = loop_at(position(batch, epoch), batch);
  const detail::CopyStream* copies = nullptr;  // kept alive by `parts`
  if (options_.device) copies = &parts_->streams.to(*options_.device);
  const auto make = [self = *this, loop, copies, epoch, last](
                        int64_t index, const std::stop_token& stop) -> std::shared_ptr<void> {
    auto read = self.read_in_turn(*loop, index, stop);
    if (read.items.empty()) return nullptr;
    Batch made = self.parts_->collate(std::move(read.items));
    auto wait = copies ? copies->copy_batch(made) : detail::CopyStream::Wait();
    const auto taken = [self, loop, last, after = index + 1, at = self.position(index + 1, epoch),
                        place = std::move(read.place), wait = std::move(wait)] {
      if (wait) wait();
      self.parts_->places.note(at, place);
      if (after == last) self.keep(loop, at);
    };
    return detail::wrap_batch(std::move(made), taken);
  };
  const int workers = options_.num_workers;
  return Iterator(
      std::vector<detail::LoaderLoop::Make>(static_cast<size_t>(std::max(workers, 1)), make),
      {.first = batch,
       .last = last,
       .epoch = epoch,
       .ahead = int64_t(workers) * options_.prefetch_factor});
}

}  // namespace sconce::data
