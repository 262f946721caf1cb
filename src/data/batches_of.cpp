#include "sconce/data/batches_of.hpp"

namespace sconce::data::detail {

LoaderOptions loader_options(BatchesOptions options) {
  return {.batch_size = options.batch_size,
          .shuffle = options.shuffle,
          .sampler = std::move(options.sampler),
          .drop_last = options.drop_last,
          .seed = options.seed};
}

void check_rows(const char* who, const torch::Tensor& tensor, const torch::Tensor& first,
                int64_t number) {
  TORCH_CHECK(tensor.defined(), who, ": tensor ", number, ": expected a tensor, got an undefined one");
  TORCH_CHECK(tensor.dim() >= 1, who, ": tensor ", number,
              ": expected rank 1 or more, got rank 0");
  TORCH_CHECK(tensor.size(0) == first.size(0), who, ": tensor ", number, ": expected ",
              first.size(0), " rows as in the first, got ", tensor.size(0));
  TORCH_CHECK(tensor.device() == first.device(), who, ": tensor ", number, ": expected it on ",
              first.device(), " as the first, got it on ", tensor.device());
}

torch::Tensor rows_between(const torch::Tensor& tensor, const torch::Tensor& order, int64_t start,
                      int64_t length) {
  if (!order.defined()) return tensor.narrow(0, start, length);
  return tensor.index_select(0, order.narrow(0, start, length));
}

}  // namespace sconce::data::detail
