// Measures data loading without training: an epoch of shuffled batches of 256 in-memory 28x28
// images, and an epoch of JPEG files.

#include <torch/torch.h>

#include <cstdlib>
#include <memory>

#include "sconce/data/batches.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/vision/image_folder.hpp"
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

Workload pictures(int64_t count) {
  namespace transforms = sconce::vision::transforms;
  const char* folder = std::getenv("SCONCE_BENCH_FILES");
  TORCH_CHECK(folder != nullptr, "feeding.pictures: expected SCONCE_BENCH_FILES, set by bench.py");
  const transforms::Compose to_input(
      transforms::Resize({224, 224}), [](const at::Tensor& x) { return x.to(torch::kFloat) / 255; },
      transforms::Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}));
  const auto loader = std::make_shared<sconce::data::DataLoader<sconce::vision::ImageFolder>>(
      sconce::vision::ImageFolder(folder, {.transform = to_input}),
      sconce::data::DataLoaderOptions{.batch_size = 32, .num_workers = 2});
  double sum = 0;
  double targets = 0;
  for (const auto& [data, target] : *loader) {
    sum += data.mean(torch::kDouble).item<double>() * static_cast<double>(data.size(0));
    targets += static_cast<double>(target.sum().item<int64_t>());
  }
  return {[loader] {
            for (const auto& batch : *loader) (void)batch;
          },
          {sum / static_cast<double>(count), targets}};
}

}  // namespace

Workloads feeding() {
  return {{"batches", batches<torch::kByte>},
          {"floats", batches<torch::kFloat>},
          {"pictures", pictures}};
}

}  // namespace bench
