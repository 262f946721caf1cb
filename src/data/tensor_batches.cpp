#include "sconce/data/tensor_batches.hpp"

#include <algorithm>

namespace sconce::data::detail {

DataLoaderOptions data_loader_options(BatchesOptions options) {
  return {.batch_size = options.batch_size,
          .shuffle = options.shuffle,
          .sampler = std::move(options.sampler),
          .drop_last = options.drop_last,
          .seed = options.seed};
}

void check_rows(const char* caller, const std::string& name, const torch::Tensor& tensor,
                const torch::Tensor& first, const char* first_name) {
  TORCH_CHECK(tensor.defined(), caller, ": ", name, ": expected a tensor, got an undefined tensor");
  TORCH_CHECK(tensor.dim() >= 1, caller, ": ", name,
              ": expected at least 1 dimension, got a 0-dim tensor");
  TORCH_CHECK(tensor.size(0) == first.size(0), caller, ": ", name, ": expected ", first.size(0),
              " rows as in ", first_name, ", got ", tensor.size(0));
  TORCH_CHECK(tensor.device() == first.device(), caller, ": ", name, ": expected a tensor on ",
              first.device(), " (like ", first_name, "), got a tensor on ", tensor.device());
}

BatchRows::BatchRows(const EpochItems& items, int64_t index)
    : start_(index * items.batch_size), length_(std::min(items.batch_size, items.items - start_)) {
  if (items.order.defined()) rows_ = items.order.narrow(0, start_, length_);
}

torch::Tensor BatchRows::of(const torch::Tensor& tensor) const {
  return rows_.defined() ? tensor.index_select(0, rows_) : tensor.narrow(0, start_, length_);
}

}  // namespace sconce::data::detail
