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

/// The batches of a loader of `torch::data`; see `from_torch`. Copies share the loader.
template <class TorchLoader>
class TorchBatches {
 public:
  /// Type of a batch: that of the loader.
  using Batch = typename TorchLoader::BatchType;
  using Iterator = LoopIterator<Batch>;  ///< position of one loop
  static_assert(!detail::is_list_of_examples<Batch>,
                "sconce::data::from_torch: expected a loader of batches, got one of lists of "
                "examples; give its dataset "
                ".map(torch::data::transforms::Stack<>()) before make_data_loader");

  /// @throw c10::Error if the loader is null or `batches` is below 1.
  TorchBatches(std::unique_ptr<TorchLoader> loader, int64_t batches)
      : parts_(std::make_shared<Parts>(std::move(loader))), batches_(batches) {
    TORCH_CHECK(parts_->loader, who, ": expected a loader, got null");
    TORCH_CHECK(batches >= 1, who, ": expected 1 batch or more, got ", batches);
  }

  /// Returns the number of batches in an epoch.
  int64_t size() const { return batches_; }

  /// Starts an epoch by the loader's `begin()`, which resets its sampler. If the loader has
  /// workers, first reads what is left of the epoch before, since it cannot begin within one. There
  /// is one loop at a time: a loop that reads on after another has begun throws.
  /// @throw what reading the rest throws.
  Iterator begin() const { return begin(0, epochs_.take()); }

  /// Starts an epoch as `begin()` does. The order is the loader's, and `epoch` is a number alone.
  /// @throw c10::Error if `batch` is not 0, or `epoch` is negative.
  Iterator begin(int64_t batch, int64_t epoch) const;

  /// Returns the sentinel that an iterator equals at the end of its epoch.
  std::default_sentinel_t end() const { return {}; }

  /// @throw c10::Error if `world_size` is above 1: the ranks would train on the same rows.
  void check_world_size(int world_size) const {
    TORCH_CHECK(
        world_size == 1, who, ": expected a process group of one, got one of ", world_size,
        "; sconce::data::DataLoader takes the dataset of the loader and a DistributedSampler");
  }

 private:
  static constexpr auto who = "sconce::data::from_torch";

  // Shared with the loops, because they may outlive this object.
  struct Parts {
    explicit Parts(std::unique_ptr<TorchLoader> from) : loader(std::move(from)) {}
    void restart();
    Batch read(int64_t loop, int64_t index, int64_t batches);

    std::unique_ptr<TorchLoader> loader;
    std::optional<decltype(std::declval<TorchLoader&>().begin())> place = {};  // of the latest loop
    int64_t loops = 0;
  };

  std::shared_ptr<Parts> parts_;
  int64_t batches_;
  detail::EpochCount epochs_ = detail::EpochCount(who);
};

/// Makes a loader of `torch::data::make_data_loader` a source of batches, for the Trainer or a loop
/// of your own: `{.train = from_torch(std::move(loader), batches)}`. Such a loader does not tell
/// how many batches an epoch has, so `batches` does: a loop ends after as many, and throws if the
/// loader has fewer. It has no epoch that can be chosen either: its sampler draws from LibTorch's
/// global generator. So it cannot resume a fit within an epoch, and a process group of several
/// refuses it; a `DataLoader` over the dataset can do both.
/// @throw c10::Error if the loader is null or `batches` is below 1.
template <class TorchLoader>
TorchBatches<TorchLoader> from_torch(std::unique_ptr<TorchLoader> loader, int64_t batches) {
  return {std::move(loader), batches};
}

template <class TorchLoader>
auto TorchBatches<TorchLoader>::begin(int64_t batch, int64_t epoch) const -> Iterator {
  TORCH_CHECK(batch == 0, who, ": expected to begin with batch 0, since a loader of torch::data ",
              "cannot begin within an epoch, got batch ", batch, "; sconce::data::DataLoader can");
  epochs_.named(epoch);
  parts_->restart();
  const auto make = [parts = parts_, loop = parts_->loops, batches = batches_](
                        int64_t index, const std::stop_token&) {
    return detail::made(parts->read(loop, index, batches));
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
  TORCH_CHECK(loop == loops, who, ": expected one loop at a time over a loader of torch::data, ",
              "got a loop that reads on after another has begun");
  if (index > 0) ++*place;
  TORCH_CHECK(*place != loader->end(), who, ": expected ", batches,
              " batches in an epoch of the loader, got ", index);
  return std::move(**place);
}

}  // namespace sconce::data
