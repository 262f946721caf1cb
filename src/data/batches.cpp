#include "sconce/data/batches.hpp"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <stop_token>

#include "sconce/data/tensor_batches.hpp"

namespace sconce::data {
namespace {

constexpr auto batches_name = "sconce::data::Batches";

int64_t checked_rows(const Dataset& dataset) {
  const auto& [data, target] = dataset;
  detail::check_rows(batches_name, "data", data, data, "data");
  TORCH_CHECK(target.defined(), batches_name,
              ": target: expected a tensor, got an undefined tensor; ",
              "sconce::data::TensorBatches splits a single tensor");
  detail::check_rows(batches_name, "target", target, data, "data");
  return data.size(0);
}

}  // namespace

Batches::Batches(Dataset dataset, BatchesOptions options)
    : LoaderBase(batches_name, detail::data_loader_options(std::move(options)),
                 checked_rows(dataset)),
      dataset_(std::move(dataset)) {}

Batches::Iterator Batches::begin(int64_t batch, int64_t epoch) const {
  detail::EpochItems items = epoch_items(batch, epoch);
  if (items.order.defined()) items.order = items.order.to(dataset_.data.device());
  const auto make = [dataset = dataset_, items](int64_t index, const std::stop_token&) {
    const detail::BatchRows rows(items, index);
    return detail::wrap_batch(Dataset{rows.of(dataset.data), rows.of(dataset.target)});
  };
  return Iterator({make}, {.first = batch, .last = size(), .epoch = epoch});
}

}  // namespace sconce::data
