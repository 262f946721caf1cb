#include "sconce/data/batches.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/randperm.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace sconce::data {
namespace {

void check_tensor(const torch::Tensor& tensor, const char* name) {
  TORCH_CHECK(tensor.defined(), "sconce::data::Batches: ", name,
              ": expected a tensor, found an undefined one");
  TORCH_CHECK(tensor.dim() >= 1, "sconce::data::Batches: ", name,
              ": expected rank 1 or more, found rank 0");
}

}  // namespace

Batches::Batches(Dataset dataset, BatchesOptions options)
    : dataset_(std::move(dataset)), options_(options) {
  const auto& [data, target] = dataset_;
  check_tensor(data, "data");
  check_tensor(target, "target");
  TORCH_CHECK(data.size(0) == target.size(0), "sconce::data::Batches: target: expected ",
              data.size(0), " rows as in data, found ", target.size(0));
  TORCH_CHECK(data.device() == target.device(), "sconce::data::Batches: target: expected it on ",
              data.device(), " as data, found it on ", target.device());
  TORCH_CHECK(options_.batch_size >= 1,
              "sconce::data::Batches: batch_size: expected 1 or more, found ", options_.batch_size);
}

Batches::Batches(Dataset dataset, const DistributedSampler& sampler, BatchesOptions options)
    : Batches(std::move(dataset), options) {
  TORCH_CHECK(!options_.shuffle,
              "sconce::data::Batches: shuffle: expected false beside a sampler, ",
              "which has the order, found true");
  TORCH_CHECK(sampler.dataset_size() == dataset_.data.size(0),
              "sconce::data::Batches: sampler: expected one for ", dataset_.data.size(0),
              " rows as in data, found one for ", sampler.dataset_size());
  sampler_ = sampler;
}

void Batches::set_epoch(int64_t epoch) {
  TORCH_CHECK(epoch >= 0, "sconce::data::Batches::set_epoch: epoch: expected 0 or more, found ",
              epoch);
  epoch_ = epoch;
  if (sampler_) sampler_->set_epoch(epoch);
}

int64_t Batches::rows() const {
  return sampler_ ? sampler_->size() : dataset_.data.size(0);
}

int64_t Batches::size() const {
  const int64_t whole = rows() / options_.batch_size;
  const bool has_short_one = rows() % options_.batch_size != 0;
  return has_short_one && !options_.drop_last ? whole + 1 : whole;
}

Batches::Iterator Batches::begin() const {
  if (sampler_) return Iterator(*this, sampler_->indices().to(dataset_.data.device()));
  if (!options_.shuffle) return Iterator(*this, {});
  const auto seed = options_.seed + static_cast<uint64_t>(epoch_);
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const torch::Tensor order = at::randperm(dataset_.data.size(0), generator, at::kLong);
  return Iterator(*this, order.to(dataset_.data.device()));
}

Batches::Iterator::Iterator(const Batches& batches, torch::Tensor order)
    : batches_(&batches), order_(std::move(order)) {}

Batches::Iterator& Batches::Iterator::operator++() {
  ++index_;
  return *this;
}

Dataset Batches::Iterator::operator*() const {
  const auto& [data, target] = batches_->dataset_;
  const int64_t batch_size = batches_->options_.batch_size;
  const int64_t start = index_ * batch_size;
  const int64_t length = std::min(batch_size, batches_->rows() - start);
  if (!order_.defined()) return {data.narrow(0, start, length), target.narrow(0, start, length)};
  const torch::Tensor rows = order_.narrow(0, start, length);
  return {data.index_select(0, rows), target.index_select(0, rows)};
}

}  // namespace sconce::data
