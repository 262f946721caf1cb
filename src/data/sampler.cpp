#include "sconce/data/sampler.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/randperm.h>
#include <c10/util/Exception.h>

#include "data/check_epoch.hpp"

namespace sconce::data {

RandomSampler::RandomSampler(int64_t dataset_size, uint64_t seed)
    : dataset_size_(dataset_size), seed_(seed) {
  TORCH_CHECK(dataset_size >= 0,
              "sconce::data::RandomSampler: expected dataset_size to be at least 0, got ",
              dataset_size);
}

void RandomSampler::set_epoch(int64_t epoch) {
  epoch_ = check_epoch(epoch, "sconce::data::RandomSampler::set_epoch");
}

torch::Tensor RandomSampler::indices() const {
  const auto generator =
      at::make_generator<at::CPUGeneratorImpl>(seed_ + static_cast<uint64_t>(epoch_));
  return at::randperm(dataset_size_, generator, at::kLong);
}

}  // namespace sconce::data
