#include "sconce/data/distributed_sampler.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/remainder.h>
#include <c10/util/Exception.h>

#include "data/check_epoch.hpp"

namespace sconce::data {

DistributedSampler::DistributedSampler(int64_t dataset_size, int num_replicas, int rank,
                                       const DistributedSamplerOptions& options)
    : dataset_size_(dataset_size), num_replicas_(num_replicas), rank_(rank), options_(options) {
  TORCH_CHECK(dataset_size_ >= 0,
              "sconce::data::DistributedSampler: expected dataset_size to be at least 0, got ",
              dataset_size_);
  TORCH_CHECK(num_replicas_ >= 1,
              "sconce::data::DistributedSampler: expected num_replicas to be at least 1, got ",
              num_replicas_);
  TORCH_CHECK(rank_ >= 0 && rank_ < num_replicas_, "sconce::data::DistributedSampler: expected a ",
              "rank of 0 to ", num_replicas_ - 1, ", got ", rank_);
}

void DistributedSampler::set_epoch(int64_t epoch) {
  epoch_ = check_epoch(epoch, "sconce::data::DistributedSampler::set_epoch");
}

int64_t DistributedSampler::size() const {
  const int64_t whole = dataset_size_ / num_replicas_;
  return options_.drop_last || dataset_size_ % num_replicas_ == 0 ? whole : whole + 1;
}

torch::Tensor DistributedSampler::indices() const {
  if (size() == 0) return at::empty({0}, at::kLong);
  // If the rows cannot be divided evenly among the ranks, the first rows are repeated as often as
  // needed.
  const auto places = at::arange(rank_, size() * num_replicas_, num_replicas_, at::kLong);
  auto rows = at::remainder(places, dataset_size_);
  if (!options_.shuffle) return rows;
  const auto seed = options_.seed + static_cast<uint64_t>(epoch_);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randperm(dataset_size_, generator, at::kLong).index_select(0, rows);
}

}  // namespace sconce::data
