#include "sconce/data/batches.hpp"

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "data/batch_count.hpp"

namespace sconce::data {
namespace {

void check_tensor(const torch::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.defined(), "sconce::data::Batches: ", name,
              ": expected a tensor, got an undefined one");
  TORCH_CHECK(tensor.dim() >= 1, "sconce::data::Batches: ", name,
              ": expected rank 1 or more, got rank 0");
}

}  // namespace

Batches::Batches(Dataset dataset, BatchesOptions options)
    : dataset_(std::move(dataset)), options_(options) {
  const auto& [data, target] = dataset_;
  check_tensor(data, "data");
  check_tensor(target, "target");
  TORCH_CHECK(data.size(0) == target.size(0), "sconce::data::Batches: target: expected ",
              data.size(0), " rows as in data, got ", target.size(0));
  TORCH_CHECK(data.device() == target.device(), "sconce::data::Batches: target: expected it on ",
              data.device(), " as data, got it on ", target.device());
  TORCH_CHECK(options_.batch_size >= 1,
              "sconce::data::Batches: batch_size: expected 1 or more, got ", options_.batch_size);
  rows_ = data.size(0);
  if (options_.shuffle) sampler_ = RandomSampler(rows_, options_.seed);
}

Batches::Batches(AnySampler sampler, Dataset dataset, BatchesOptions options)
    : Batches(std::move(dataset), options) {
  TORCH_CHECK(!options_.shuffle, "sconce::data::Batches: shuffle: expected false with a sampler, ",
              "which sets the order, got true");
  TORCH_CHECK(sampler.dataset_size() == rows_, "sconce::data::Batches: sampler: expected one for ",
              rows_, " rows as in data, got one for ", sampler.dataset_size());
  rows_ = sampler.size();
  sampler_ = std::move(sampler);
  epochs_ = detail::EpochCount("sconce::data::Batches", sampler_);
}

void Batches::set_epoch(int64_t epoch) {
  epochs_.set(epoch);
}

int64_t Batches::size() const {
  return batch_count(rows_, options_.batch_size, options_.drop_last);
}

Batches::Iterator Batches::begin() const& {
  return Iterator(*this, 0, epochs_.take());
}

Batches::Iterator Batches::begin(int64_t batch, int64_t epoch) const& {
  check_first_batch(batch, size(), "sconce::data::Batches::begin");
  return Iterator(*this, batch, epochs_.named(epoch));
}

Batches::Iterator::Iterator(const Batches& batches, int64_t index, int64_t epoch)
    : batches_(&batches), index_(index), epoch_(epoch) {
  const auto& sampler = batches.sampler_;
  if (sampler) order_ = sampler.indices(epoch).to(batches.dataset_.data.device());
}

Batches::Iterator& Batches::Iterator::operator++() {
  ++index_;
  return *this;
}

Dataset Batches::Iterator::operator*() const {
  const auto& [data, target] = batches_->dataset_;
  const int64_t batch_size = batches_->options_.batch_size;
  const int64_t start = index_ * batch_size;
  const int64_t length = std::min(batch_size, batches_->rows_ - start);
  if (!order_.defined()) return {data.narrow(0, start, length), target.narrow(0, start, length)};
  const torch::Tensor rows = order_.narrow(0, start, length);
  return {data.index_select(0, rows), target.index_select(0, rows)};
}

}  // namespace sconce::data
