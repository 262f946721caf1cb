// An epoch of shuffled batches of 256 pictures of 28 x 28 in memory, without training.

#include <torch/torch.h>

#include <memory>

#include "sconce/data/batches.hpp"
#include "workload.hpp"

namespace bench {

namespace {

template <at::ScalarType type>
Workload batches(int64_t pictures) {
  torch::manual_seed(0);
  const auto data = torch::randint(256, {pictures, 28, 28}, type);
  const auto target = torch::arange(pictures);
  auto made = std::make_shared<sconce::data::Batches>(
      sconce::data::Dataset{data, target},
      sconce::data::BatchesOptions{.batch_size = 256, .shuffle = true});
  const auto sum_of_targets = [made] {
    int64_t sum = 0;
    for (const auto& batch : *made) sum += batch.target.sum().item<int64_t>();
    return static_cast<double>(sum);
  };
  return {[made] {
            for (const auto& batch : *made) (void)batch;
          },
          {sum_of_targets()}};
}

}  // namespace

Workloads feeding() {
  return {{"batches", batches<torch::kByte>}, {"floats", batches<torch::kFloat>}};
}

}  // namespace bench
