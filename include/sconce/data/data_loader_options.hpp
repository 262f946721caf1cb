#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "sconce/data/sampler.hpp"
#include "sconce/fwd.hpp"

namespace sconce::data {

/// Options for `Batches`, with the same names and defaults as `torch.utils.data.DataLoader`. The
/// order is determined by `seed` instead of the default generator.
struct BatchesOptions {
  int64_t batch_size = 1;   ///< rows per batch, at least 1; the last batch may be shorter
  bool shuffle = false;     ///< whether to shuffle, in the same order as
                            ///< `RandomSampler(size, seed)`
  AnySampler sampler = {};  ///< selects rows and their order; default: all rows in order
  bool drop_last = false;   ///< whether to drop the last batch if it is incomplete
  uint64_t seed = 0;        ///< seed for `shuffle`
};

/// Options for `DataLoader`, in the same order as the arguments of `torch.utils.data.DataLoader`,
/// with `seed` in place of `generator`. Options shared with `Batches` have the same meaning.
struct DataLoaderOptions {
  int64_t batch_size = 1;   ///< items per batch, at least 1; the last batch may be shorter
  bool shuffle = false;     ///< whether to shuffle, in the same order as
                            ///< `RandomSampler(size, seed)`
  AnySampler sampler = {};  ///< selects items and their order; default: all items in order
  int num_workers = 0;      ///< number of worker threads; 0 creates batches in the loop's thread
  bool drop_last = false;   ///< whether to drop the last batch if it is incomplete
  uint64_t seed = 0;        ///< seed for `shuffle` and for the items' generators
  int prefetch_factor = 2;  ///< number of batches that each worker prefetches

  /// Device to copy batches to. Copies to a GPU use pinned memory and a separate stream, and the
  /// loop's stream waits for the copies. By default, batches stay on the device of their items.
  std::optional<torch::Device> device = {};
};

/// Options for `StreamLoader`. Options shared with `DataLoader` have the same meaning.
struct StreamLoaderOptions {
  int64_t batch_size = 1;  ///< items per batch, at least 1
  /// Number of batches in an epoch. Each epoch continues where the previous epoch ended, and the
  /// stream restarts when it is exhausted. If 0, an epoch is one pass over the stream. Your own
  /// training loop can use 0, but a Trainer requires a positive value.
  int64_t batches_per_epoch = 0;
  int64_t shuffle_buffer = 0;  ///< number of items that are shuffled together; 0 disables shuffling
  int num_workers = 0;         ///< number of worker threads; 0 creates batches in the loop's thread
  bool drop_last = false;      ///< whether to drop the last batch of a pass if it is incomplete
  uint64_t seed = 0;           ///< seed for the shuffled orders
  int prefetch_factor = 2;     ///< number of batches that each worker prefetches
  /// Device to copy batches to, as in `DataLoaderOptions`.
  std::optional<torch::Device> device = {};
  /// Number of ranks that share the stream. Each rank receives one item out of every `num_replicas`
  /// consecutive items. Items left over at the end of a pass are dropped.
  int num_replicas = 1;
  int rank = 0;  ///< rank of this loader among the replicas
};

}  // namespace sconce::data
