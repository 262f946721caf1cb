#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "sconce/data/data_loader_options.hpp"
#include "sconce/data/detail/epoch_count.hpp"
#include "sconce/fwd.hpp"

namespace sconce::data::detail {

// The items of one epoch in order, split into batches.
struct EpochItems {
  std::vector<int64_t> of(int64_t batch) const;

  torch::Tensor order;  // int64 (items,) on the CPU; if undefined, 0, 1, 2...
  int64_t items;
  int64_t batch_size;
  uint64_t seed;
  uint64_t epoch;
};

// The state that `Batches` and every `DataLoader` have in common: the items of an epoch and the
// epoch counter.
class LoaderBase {
 public:
  /// Sets the epoch for the next call to `begin()` on this loader and its copies. The epoch
  /// determines the order of the items and the seeds of their generators. Running loops are not
  /// affected.
  /// Python: `DistributedSampler.set_epoch(epoch)`.
  /// @throw c10::Error if `epoch` is negative.
  void set_epoch(int64_t epoch);

  /// Returns the number of batches in an epoch. Python: `len(loader)`.
  int64_t size() const;

  /// Returns the end-of-epoch sentinel for comparison with iterators.
  std::default_sentinel_t end() const { return {}; }

 protected:
  // `caller` is the loader's class name for error messages, and `items` is the size of the dataset.
  LoaderBase(const char* caller, DataLoaderOptions options, std::optional<int64_t> items);
  int64_t take_epoch() const { return epochs_.take(); }
  EpochItems epoch_items(int64_t first_batch, int64_t epoch) const;
  const DataLoaderOptions& options() const { return options_; }

 private:
  const char* caller_;
  DataLoaderOptions options_;
  int64_t items_ = 0;
  EpochCount epochs_;
};

}  // namespace sconce::data::detail
