#include "sconce/data/weighted_random_sampler.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/multinomial.h>
#include <c10/util/Exception.h>

#include <limits>

#include "data/check_epoch.hpp"

namespace sconce::data {
namespace {

// Checks the weights and returns a float64 copy on the CPU.
torch::Tensor checked(const torch::Tensor& weights) {
  const char* name = "sconce::data::WeightedRandomSampler: expected ";
  TORCH_CHECK(weights.defined(), name, "weights, got an undefined tensor");
  TORCH_CHECK(weights.dim() == 1, name, "weights of shape (dataset_size,), got shape ",
              weights.sizes());
  TORCH_CHECK(weights.size(0) >= 1 && weights.size(0) <= 1 << 24, name, "1 to 2^24 weights, got ",
              weights.size(0));
  TORCH_CHECK(!weights.is_complex(), name, "real weights, got ", weights.scalar_type());
  const auto copy = weights.detach().to(at::kCPU, at::kDouble, /*non_blocking=*/false, true);
  const double least = copy.min().item<double>();  // nan if any weight is nan
  const double sum = copy.sum().item<double>();
  TORCH_CHECK(least >= 0, name, "non-negative weights, got ", least);
  TORCH_CHECK(sum > 0 && sum <= std::numeric_limits<double>::max(), name,
              "weights with a finite, positive sum, got ", sum);
  return copy;
}

}  // namespace

WeightedRandomSampler::WeightedRandomSampler(const torch::Tensor& weights, int64_t num_samples,
                                             WeightedRandomSamplerOptions options)
    : weights_(checked(weights)), num_samples_(num_samples), options_(options) {
  TORCH_CHECK(num_samples_ >= 1,
              "sconce::data::WeightedRandomSampler: expected num_samples to be at least 1, got ",
              num_samples_);
  if (options_.replacement) return;
  const auto most = weights_.count_nonzero().item<int64_t>();
  TORCH_CHECK(num_samples_ <= most, "sconce::data::WeightedRandomSampler: expected num_samples ",
              "to be at most ", most, " (the number of nonzero weights) without replacement, got ",
              num_samples_);
}

void WeightedRandomSampler::set_epoch(int64_t epoch) {
  epoch_ = check_epoch(epoch, "sconce::data::WeightedRandomSampler::set_epoch");
}

torch::Tensor WeightedRandomSampler::indices() const {
  const auto seed = options_.seed + static_cast<uint64_t>(epoch_);
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::multinomial(weights_, num_samples_, options_.replacement, generator);
}

}  // namespace sconce::data
