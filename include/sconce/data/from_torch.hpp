#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "sconce/data/dataset.hpp"
#include "sconce/data/detail/epoch_count.hpp"
#include "sconce/data/detail/loader_loop.hpp"
#include "sconce/data/loop_iterator.hpp"

namespace sconce::data {

namespace detail {

template <class Batch>
constexpr bool is_list_of_examples = false;
template <class Data, class Target>
constexpr bool is_list_of_examples<std::vector<torch::data::Example<Data, Target>>> = true;

}  // namespace detail

/// The batches of a `torch::data` loader, as returned by `from_torch`. Copies share the loader.
template <class TorchLoader>
class TorchBatches {
 public:
  /// The loader's batch type.
  using Batch = typename TorchLoader::BatchType;
  using Iterator = LoopIterator<Batch>;  ///< iterator type of a loop
  static_assert(!detail::is_list_of_examples<Batch>,
                "sconce::data::from_torch: expected a loader that returns batches, got one that "
                "returns lists of examples; apply .map(torch::data::transforms::Stack<>()) to its "
                "dataset before make_data_loader");

  /// Wraps `loader`, which yields `batches` batches per epoch.
  /// @throw c10::Error if `loader` is null or `batches` is below 1.
  TorchBatches(std::unique_ptr<TorchLoader> loader, int64_t batches)
      : parts_(std::make_shared<Parts>(std::move(loader))), batches_(batches) {
    TORCH_CHECK(parts_->loader, caller, ": expected a loader, got null");
    TORCH_CHECK(batches >= 1, caller, ": expected at least 1 batch, got ", batches);
  }

  /// Returns the number of batches in an epoch.
  int64_t size() const { return batches_; }

  /// Starts an epoch by calling the loader's `begin()`, which resets its sampler. A loader with
  /// workers cannot restart mid-epoch, so the previous epoch's remaining batches are read first.
  /// Only one loop can run at a time. After a second loop has started, continuing the first loop
  /// throws an error.
  /// @throw any exception thrown while reading the rest of the previous epoch.
  Iterator begin() const { return begin(0, epochs_.take()); }

  /// Starts an epoch, like `begin()`. The loader determines the order, so `epoch` sets only the
  /// epoch that the iterator reports.
  /// @throw c10::Error if `batch` is not 0 or `epoch` is negative.
  Iterator begin(int64_t batch, int64_t epoch) const;

  /// Returns the end-of-epoch sentinel for comparison with iterators.
  std::default_sentinel_t end() const { return {}; }

  /// Checks that the process group has a single process.
  /// @throw c10::Error if `world_size` is above 1, because all ranks would train on the same rows.
  void check_world_size(int world_size) const {
    TORCH_CHECK(world_size == 1, caller, ": expected a process group of one rank, got a group of ",
                world_size,
                "; sconce::data::DataLoader accepts the loader's dataset and a DistributedSampler");
  }

 private:
  static constexpr auto caller = "sconce::data::from_torch";

  // State shared with the loops, which may outlive this object.
  struct Parts {
    explicit Parts(std::unique_ptr<TorchLoader> from) : loader(std::move(from)) {}
    void restart();
    Batch read(int64_t loop, int64_t index, int64_t batches);

    std::unique_ptr<TorchLoader> loader;
    std::optional<decltype(std::declval<TorchLoader&>().begin())> place = {};  // iterator of the
                                                                               // latest loop
    int64_t loops = 0;
  };

  std::shared_ptr<Parts> parts_;
  int64_t batches_;
  detail::EpochCount epochs_ = detail::EpochCount(caller);
};

/// Converts a loader returned by `torch::data::make_data_loader` to a source of batches for the
/// Trainer or your own loop: `{.train = from_torch(std::move(loader), batches)}`. The loader does
/// not report the number of batches in an epoch, so you must specify `batches`. A loop ends after
/// `batches` batches and throws if the loader yields fewer. You also cannot choose the epoch,
/// because the loader's sampler draws from LibTorch's global generator. With a `torch::data`
/// loader, the Trainer's `fit` cannot resume mid-epoch and throws an error if the process group has
/// several processes. To resume mid-epoch or to train in several processes, use a `DataLoader` over
/// the dataset.
/// @throw c10::Error if `loader` is null or `batches` is below 1.
template <class TorchLoader>
TorchBatches<TorchLoader> from_torch(std::unique_ptr<TorchLoader> loader, int64_t batches) {
  return {std::move(loader), batches};
}

template <class TorchLoader>
auto TorchBatches<TorchLoader>::begin(int64_t batch, int64_t epoch) const -> Iterator {
  TORCH_CHECK(batch == 0, caller,
              ": expected to start at batch 0 (a torch::data loader cannot start within an epoch), "
              "got batch ",
              batch, "; sconce::data::DataLoader can");
  epochs_.named(epoch);
  parts_->restart();
  const auto make = [parts = parts_, loop = parts_->loops, batches = batches_](
                        int64_t index, const std::stop_token&) {
    return detail::wrap_batch(parts->read(loop, index, batches));
  };
  return Iterator({make}, {.first = 0, .last = batches_, .epoch = epoch});
}

template <class TorchLoader>
void TorchBatches<TorchLoader>::Parts::restart() {
  if (place && loader->options().workers > 0) {
    while (*place != loader->end()) ++*place;
  }
  place = loader->begin();
  ++loops;
}

template <class TorchLoader>
auto TorchBatches<TorchLoader>::Parts::read(int64_t loop, int64_t index, int64_t batches) -> Batch {
  TORCH_CHECK(loop == loops, caller, ": expected one loop at a time over a torch::data loader, ",
              "got a loop that continues after another has started");
  if (index > 0) ++*place;
  TORCH_CHECK(*place != loader->end(), caller, ": expected ", batches,
              " batches in an epoch of the loader, got ", index);
  return std::move(**place);
}

}  // namespace sconce::data
