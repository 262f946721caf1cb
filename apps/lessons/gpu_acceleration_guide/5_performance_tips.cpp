// Moves a batch to the device, adds tensors there, and trains with mixed precision.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>

namespace nn = torch::nn;

int main() {
  torch::manual_seed(0);
  auto device = torch::Device(torch::cuda::is_available() ? "cuda" : "cpu");
  nn::Linear model(3, 2);
  model->to(device);
  nn::CrossEntropyLoss loss_fn;
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
  auto inputs = torch::randn({100, 3});
  auto labels = torch::randint(0, 2, {100});
  sconce::data::Batches dataloader({inputs.to(device), labels.to(device)},
                                   {.batch_size = 25});

  // T4.batch
  inputs = inputs.to(device), labels = labels.to(device);

  // T4.same
  auto tensor1 = torch::randn({5, 5}).to(device);
  auto tensor2 = torch::randn({5, 5}).to(device);
  auto result = tensor1 + tensor2;

  // T4.amp
  sconce::amp::GradScaler scaler;
  for (auto [data, target] : dataloader) {
    optimizer.zero_grad();
    torch::Tensor output, loss;
    {
      sconce::amp::AutocastGuard autocast(torch::kCUDA);
      output = model(data);
      loss = loss_fn(output, target);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
  }

  // T4.amp-speed
  int width = 256;
  if (torch::cuda::is_available())
    width = 32 * sconce::cuda::get_device_properties(sconce::gpu()).multi_processor_count;
  nn::Linear wide(width, width);
  wide->to(device);
  torch::optim::SGD sgd(wide->parameters(), /*lr=*/0.01);
  auto x = torch::randn({width, width}, device);
  for (auto mixed : {false, true}) {
    auto step = [&] {
      sgd.zero_grad();
      torch::Tensor loss;
      {
        sconce::amp::AutocastGuard autocast(device.type(), {.enabled = mixed});
        loss = wide(x).square().mean();
      }
      scaler.scale(loss).backward();
      scaler.step(sgd);
      scaler.update();
    };
    std::printf("~ step at width %d in %s: %.2f ms\n", width,
                mixed ? "mixed precision" : "float32",
                sconce::median_seconds(step, device) * 1e3);
  }

  // Beyond the tutorial
  std::printf("Beyond the tutorial:\n");
  std::printf("the scaler is enabled: %s\n", sconce::repr(scaler.is_enabled()).c_str());
}
