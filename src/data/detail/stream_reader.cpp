#include "sconce/data/detail/stream_reader.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randperm.h>

#include <numeric>

#include "data/check_loading.hpp"
#include "sconce/data/seed.hpp"

namespace sconce::data::detail {

void check_stream_options(const StreamLoaderOptions& options) {
  check_loading("sconce::data::StreamLoader", options);
  constexpr auto error_prefix = "sconce::data::StreamLoader: expected ";
  TORCH_CHECK(options.batches_per_epoch >= 0, error_prefix,
              "batches_per_epoch to be at least 0, got ", options.batches_per_epoch);
  TORCH_CHECK(options.shuffle_buffer >= 0, error_prefix, "shuffle_buffer to be at least 0, got ",
              options.shuffle_buffer);
  TORCH_CHECK(options.num_replicas >= 1, error_prefix, "num_replicas to be at least 1, got ",
              options.num_replicas);
  TORCH_CHECK(options.rank >= 0 && options.rank < options.num_replicas, error_prefix,
              "a rank from 0 to ", options.num_replicas - 1, ", got ", options.rank);
  TORCH_CHECK(
      !options.drop_last || options.batches_per_epoch == 0, error_prefix,
      "drop_last to be false if batches_per_epoch is set (which makes every batch full), got true");
}

std::vector<int64_t> chunk_order(const StreamLoaderOptions& options, const StreamPlace& place,
                                 int64_t items) {
  std::vector<int64_t> order(static_cast<size_t>(items));
  if (options.shuffle_buffer == 0) {
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  const uint64_t seed = mix_seeds(options.seed, static_cast<uint64_t>(place.pass),
                                  static_cast<uint64_t>(place.chunk));
  const auto drawn = at::randperm(items, at::make_generator<at::CPUGeneratorImpl>(seed));
  std::copy_n(drawn.const_data_ptr<int64_t>(), items, order.begin());
  return order;
}

}  // namespace sconce::data::detail
