#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "sconce/data/sampler.hpp"
#include "sconce/fwd.hpp"

namespace sconce::data {

/// Options of `Batches`: names and defaults of `torch.utils.data.DataLoader`, and `seed`, which
/// decides the order instead of the default generator.
struct BatchesOptions {
  int64_t batch_size = 1;   ///< rows per batch, at least 1; the last batch may be shorter
  bool shuffle = false;     ///< whether to use the order of `RandomSampler(size, seed)`
  AnySampler sampler = {};  ///< chooses rows and order; none: all rows in their own order
  bool drop_last = false;   ///< whether to drop a last batch shorter than `batch_size`
  uint64_t seed = 0;        ///< seed of `shuffle`
};

/// Options of a `DataLoader`, in the order of `torch.utils.data.DataLoader`'s arguments, with
/// `seed` for its generator. Those of `Batches` mean the same.
struct DataLoaderOptions {
  int64_t batch_size = 1;   ///< items per batch, at least 1; the last batch may be shorter
  bool shuffle = false;     ///< whether to use the order of `RandomSampler(size, seed)`
  AnySampler sampler = {};  ///< chooses items and order; none: all items in their own order
  int num_workers = 0;      ///< number of reading threads; 0: the loop reads each batch itself
  bool drop_last = false;   ///< whether to drop a last batch shorter than `batch_size`
  uint64_t seed = 0;        ///< seed of `shuffle` and of the generators of items
  int prefetch_factor = 2;  ///< batches per worker that are made ahead of the loop

  /// Device to copy batches to. Copies to a GPU use pinned memory and a separate stream, which the
  /// loop's stream waits for. None: batches stay on the device of their items.
  std::optional<torch::Device> device = {};
};

/// Options of a `StreamLoader`. Those of `DataLoader` mean the same.
struct StreamLoaderOptions {
  int64_t batch_size = 1;  ///< items per batch, at least 1
  /// Batches in an epoch. The next epoch continues where this one ends, and a stream that ends
  /// begins anew. 0: an epoch is one pass over the stream, which a loop of your own can make, but
  /// not a Trainer.
  int64_t batches_per_epoch = 0;
  int64_t shuffle_buffer = 0;  ///< number of items that are shuffled together; 0: none are
  int num_workers = 0;      ///< number of threads that make batches; 0: the loop makes each itself
  bool drop_last = false;   ///< whether to drop a last batch shorter than `batch_size` of a pass
  uint64_t seed = 0;        ///< seed of the shuffled orders
  int prefetch_factor = 2;  ///< batches per worker that are made ahead of the loop
  /// Device to copy batches to, as a `DataLoader` does.
  std::optional<torch::Device> device = {};
  /// Number of ranks that share the stream. Of each `num_replicas` items in a row, each rank takes
  /// one. Items that are left at the end of a pass are dropped.
  int num_replicas = 1;
  int rank = 0;  ///< which of them this loader takes
};

}  // namespace sconce::data
