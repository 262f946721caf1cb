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

// A function of a `Dataset`, for batches of `torch::data::Example<>`.
template <class F, class Batch>
concept TakesAsDataset =
    TorchExample<std::remove_cvref_t<Batch>> && !TakesBatch<F, Batch> && TakesBatch<F, Dataset>;

}  // namespace detail

/// The options of `TransformedBatches`.
struct TransformedBatchesOptions {
  uint64_t seed = 0;  ///< seed of the generators, together with epoch and batch index
};

/// Applies a function to each batch of a source, such as `Batches`:
/// `TransformedBatches train(batches, [](Dataset batch, const at::Generator& generator) { ... });`
/// The result is again a source, which the Trainer accepts.
///
/// The function takes the batch, or the batch and a CPU `at::Generator`. The generator is seeded
/// for each batch by `mix_seeds(seed, epoch, index)`, so a batch is the same wherever a loop
/// begins. The function is called when a batch is read, in the reading thread. Copies of this
/// object share the source and the function. Python: `map` over a DataLoader.
template <class Source, class Function>
class TransformedBatches {
  using SourceIterator = decltype(std::declval<const Source&>().begin());
  using Read = decltype(*std::declval<const SourceIterator&>());
  static constexpr bool as_dataset = detail::TakesAsDataset<Function, Read>;
  using SourceBatch = std::conditional_t<as_dataset, Dataset, Read>;
  static constexpr bool takes_generator =
      std::invocable<const Function&, SourceBatch, const at::Generator&>;
  static_assert(detail::TakesBatch<Function, SourceBatch>,
                "sconce::data::TransformedBatches: expected a function, callable when const, of "
                "the source's batch, or of it and an at::Generator");

  using Result =
      std::conditional_t<takes_generator,
                         std::invoke_result<const Function&, SourceBatch, const at::Generator&>,
                         std::invoke_result<const Function&, SourceBatch>>;

 public:
  /// Type of a batch: the return type of the function.
  using Batch = std::remove_cvref_t<typename Result::type>;
  using Iterator = LoopIterator<Batch>;  ///< position of one loop

  /// Takes the source and the function.
  TransformedBatches(Source source, Function function, TransformedBatchesOptions options = {})
      : parts_(std::make_shared<Parts>(std::move(source), std::move(function))),
        options_(options) {}

  /// Returns the number of batches in an epoch, which is that of the source.
  int64_t size() const { return parts_->source.size(); }

  /// Sets the epoch of the next `begin()`, also in the source if it has epochs and in the copies of
  /// this object. A running loop keeps its own.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch) {
    epochs_.set(epoch);
    if constexpr (requires { parts_->source.set_epoch(epoch); }) parts_->source.set_epoch(epoch);
  }

  /// Starts the next epoch by `begin()` of the source. The generators are of the epoch that the
  /// source's iterator has, as that of `Batches` and `DataLoader` has one. For another source they
  /// are of epoch 0, 1, 2 and so on, counted over all copies of this object.
  Iterator begin() const {
    detail::SourcePlace<Source> place{nullptr, std::as_const(parts_->source).begin()};
    const int64_t epoch = epoch_of(place.iterator);
    return loop(std::move(place), 0, epoch);
  }

  /// Starts this epoch at the batch with this index, and leaves the epoch of the next `begin()`
  /// alone. A source that has `set_epoch` and no `begin(batch, epoch)` is copied for it.
  /// @throw c10::Error if `epoch` is negative, and what the source throws.
  Iterator begin(int64_t batch, int64_t epoch) const {
    epochs_.named(epoch);
    return loop(detail::begin_at(std::as_const(parts_->source), batch, epoch), batch, epoch);
  }

  /// Checks the size of the process group, if the source does.
  /// @throw c10::Error if the source cannot be used in a process group of this size.
  void check_world_size(int world_size) const
    requires requires(const Source& source) { source.check_world_size(world_size); }
  {
    parts_->source.check_world_size(world_size);
  }

  /// Returns the place of the loop over the source, if the source has places, as `StreamLoader`
  /// has.
  c10::IValue state_dict() const
    requires requires(const Source& source) { source.state_dict(); }
  {
    return parts_->source.state_dict();
  }

  /// Takes the place of an earlier loop.
  /// @throw what the source throws.
  void load_state_dict(const c10::IValue& state)
    requires requires(Source& source) { source.load_state_dict(state); }
  {
    parts_->source.load_state_dict(state);
  }

  /// Returns the sentinel that an iterator equals at the end of its epoch.
  std::default_sentinel_t end() const { return {}; }

 private:
  // Shared with the loops, because they may outlive this object.
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
      return made(*parts, *place, index, index > first, mixed);
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
  static std::shared_ptr<void> made(const Parts& parts, detail::SourcePlace<Source>& at,
                                    int64_t index, bool advance, uint64_t seed) {
    SourceIterator& place = at.iterator;
    try {
      if (advance) ++place;
      at.check(parts.source, index);
      if constexpr (takes_generator) {
        const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
        return detail::made<Batch>(parts.function(read(place), generator));
      } else {
        return detail::made<Batch>(parts.function(read(place)));
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
