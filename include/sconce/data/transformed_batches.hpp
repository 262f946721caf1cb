#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/core/ivalue.h>

#include <concepts>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "sconce/data/dataset.hpp"
#include "sconce/data/detail/begin_at.hpp"
#include "sconce/data/detail/epoch_count.hpp"
#include "sconce/data/detail/loader_loop.hpp"
#include "sconce/data/loop_iterator.hpp"
#include "sconce/data/seed.hpp"

namespace sconce::data {

namespace detail {

template <class F, class Batch>
concept TakesBatch =
    std::invocable<const F&, Batch> || std::invocable<const F&, Batch, const at::Generator&>;

// A function that accepts a `Dataset` and is applied to batches of type `torch::data::Example<>`.
template <class F, class Batch>
concept TakesAsDataset =
    TorchExample<std::remove_cvref_t<Batch>> && !TakesBatch<F, Batch> && TakesBatch<F, Dataset>;

}  // namespace detail

/// Options for `TransformedBatches`.
struct TransformedBatchesOptions {
  uint64_t seed = 0;  ///< seed of the generators, combined with the epoch and the batch index
};

/// Applies a function to each batch of a source, such as `Batches`: `TransformedBatches
/// train(batches, [](Dataset batch, const at::Generator& generator) { ... });` The result is a
/// source of batches that you can pass to the Trainer.
///
/// The function accepts either the batch, or the batch and a CPU `at::Generator`. For each batch,
/// the generator is seeded with `mix_seeds(seed, epoch, index)`, so starting a loop mid-epoch does
/// not change the batches. The function is called when a batch is read, in the thread that reads
/// it. Copies of this object share the source and the function. Python: `map` over a DataLoader.
template <class Source, class Function>
class TransformedBatches {
  using SourceIterator = decltype(std::declval<const Source&>().begin());
  using Read = decltype(*std::declval<const SourceIterator&>());
  static constexpr bool as_dataset = detail::TakesAsDataset<Function, Read>;
  using SourceBatch = std::conditional_t<as_dataset, Dataset, Read>;
  static constexpr bool takes_generator =
      std::invocable<const Function&, SourceBatch, const at::Generator&>;
  static_assert(detail::TakesBatch<Function, SourceBatch>,
                "sconce::data::TransformedBatches: expected a const-callable function of the "
                "source's batch, or of that batch and an at::Generator");

  using Result =
      std::conditional_t<takes_generator,
                         std::invoke_result<const Function&, SourceBatch, const at::Generator&>,
                         std::invoke_result<const Function&, SourceBatch>>;

 public:
  /// Type of a batch, which is the return type of the function.
  using Batch = std::remove_cvref_t<typename Result::type>;
  using Iterator = LoopIterator<Batch>;  ///< iterator type of a loop

  /// Applies `function` to the batches of `source`.
  TransformedBatches(Source source, Function function, TransformedBatchesOptions options = {})
      : parts_(std::make_shared<Parts>(std::move(source), std::move(function))),
        options_(options) {}

  /// Returns the number of batches in an epoch, which equals the number of batches in the source.
  int64_t size() const { return parts_->source.size(); }

  /// Sets the epoch for the next call to `begin()` on this object and its copies. If the source has
  /// epochs, the source's epoch is also set to `epoch`. Running loops are not affected.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch) {
    epochs_.set(epoch);
    if constexpr (requires { parts_->source.set_epoch(epoch); }) parts_->source.set_epoch(epoch);
  }

  /// Starts the next epoch by calling the source's `begin()`. If the source's iterator reports an
  /// epoch, as in `Batches` and `DataLoader`, the generators use that epoch. Otherwise, the
  /// generators use epochs 0, 1, 2, and so on, which are counted across all copies of this object.
  Iterator begin() const {
    detail::SourcePlace<Source> place{nullptr, std::as_const(parts_->source).begin()};
    const int64_t epoch = epoch_of(place.iterator);
    return loop(std::move(place), 0, epoch);
  }

  /// Starts epoch `epoch` at batch `batch`, without changing the epoch for the next call to
  /// `begin()`. If the source defines `set_epoch` but not `begin(batch, epoch)`, the source is
  /// copied first.
  /// @throw c10::Error if `epoch` is negative, and any exception thrown by the source.
  Iterator begin(int64_t batch, int64_t epoch) const {
    epochs_.named(epoch);
    return loop(detail::begin_at(std::as_const(parts_->source), batch, epoch), batch, epoch);
  }

  /// Checks the size of the process group if the source defines `check_world_size`.
  /// @throw c10::Error if the source cannot be used in a process group of this size.
  void check_world_size(int world_size) const
    requires requires(const Source& source) { source.check_world_size(world_size); }
  {
    parts_->source.check_world_size(world_size);
  }

  /// Returns the loop's position in the source. Available for sources that define `state_dict()`,
  /// such as `StreamLoader`.
  c10::IValue state_dict() const
    requires requires(const Source& source) { source.state_dict(); }
  {
    return parts_->source.state_dict();
  }

  /// Restores the position of an earlier loop.
  /// @throw any exception thrown by the source.
  void load_state_dict(const c10::IValue& state)
    requires requires(Source& source) { source.load_state_dict(state); }
  {
    parts_->source.load_state_dict(state);
  }

  /// Returns the end-of-epoch sentinel for comparison with iterators.
  std::default_sentinel_t end() const { return {}; }

 private:
  // State shared with the loops, which may outlive this object.
  struct Parts {
    Parts(Source s, Function f) : source(std::move(s)), function(std::move(f)) {}
    Source source;
    const Function function;
  };

  int64_t epoch_of(const SourceIterator& place) const {
    if constexpr (requires { place.epoch(); }) {
      return place.epoch();
    } else {
      return epochs_.take();
    }
  }

  Iterator loop(detail::SourcePlace<Source> begin, int64_t first, int64_t epoch) const {
    const auto place = std::make_shared<detail::SourcePlace<Source>>(std::move(begin));
    const auto make = [parts = parts_, place, first, epoch, seed = options_.seed](
                          int64_t index, const std::stop_token&) {
      const uint64_t mixed = mix_seeds(seed, uint64_t(epoch), uint64_t(index));
      return make_batch(*parts, *place, index, index > first, mixed);
    };
    return Iterator({make}, {.first = first, .last = size(), .epoch = epoch});
  }

  static SourceBatch read(const SourceIterator& place) {
    if constexpr (as_dataset) {
      const auto& example = *place;
      return {example.data, example.target};
    } else {
      return *place;
    }
  }

  // Reads the next batch of the source and calls the function.
  static std::shared_ptr<void> make_batch(const Parts& parts, detail::SourcePlace<Source>& at,
                                          int64_t index, bool advance, uint64_t seed) {
    SourceIterator& place = at.iterator;
    try {
      if (advance) ++place;
      at.check(parts.source, index);
      if constexpr (takes_generator) {
        const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
        return detail::wrap_batch<Batch>(parts.function(read(place), generator));
      } else {
        return detail::wrap_batch<Batch>(parts.function(read(place)));
      }
    } catch (...) {
      if constexpr (requires { place.failed_item(); }) {
        const std::optional<int64_t> item = place.failed_item();
        if (item) throw detail::ItemError{*item, std::current_exception()};
      }
      throw;
    }
  }

  std::shared_ptr<Parts> parts_;
  TransformedBatchesOptions options_;
  detail::EpochCount epochs_ = detail::EpochCount("sconce::data::TransformedBatches");
};

}  // namespace sconce::data
