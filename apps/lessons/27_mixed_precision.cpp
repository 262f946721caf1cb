// Mixed precision: autocast computes in 16 bits, and a scaler keeps small gradients above 0.
// Covers: T4.amp
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>

using sconce::repr;

void beyond(const sconce::data::Batches& dataloader, torch::Device device);

int main() {
  // note: T4 defines neither model, loader, loss nor optimizer. Its data never move, which fails on
  // a GPU; here the loader's tensors lie on the device.
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  torch::nn::Linear model(3, 2);
  model->to(device);
  torch::nn::CrossEntropyLoss loss_fn;
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
  auto inputs = torch::randn({200, 3}).to(device);
  auto labels = torch::randint(0, 2, {200}).to(device);
  const sconce::data::Batches dataloader({inputs, labels}, {.batch_size = 25});

  // T4.amp
  // note: T4's scaler and autocast are for GPUs; without one they warn and turn themselves off.
  // note: output and loss outlive autocast's scope, so they are declared before it. `backward` is
  // called outside of it, in both languages.
  sconce::amp::GradScaler scaler({.device = device.type()});
  torch::Tensor output, loss;
  for (auto [data, target] : dataloader) {
    optimizer.zero_grad();
    {
      sconce::amp::AutocastGuard autocast(device.type());
      output = model(data);
      loss = loss_fn(output, target);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
  }

  beyond(dataloader, device);
}

// Beyond the cells: the loop in three types. In float16 too large a scale makes gradients inf: such
// a step is skipped and the scale halved, until it fits. After two good steps it doubles.
void beyond(const sconce::data::Batches& dataloader, torch::Device device) {
  for (const auto dtype : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    torch::manual_seed(0);
    torch::nn::Linear model(3, 2);
    model->to(device);
    torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
    sconce::amp::GradScaler scaler(
        {.device = device.type(), .init_scale = 1 << 24, .growth_interval = 2});
    torch::Tensor output, loss;
    for (auto [data, target] : dataloader) {
      optimizer.zero_grad();
      {
        sconce::amp::AutocastGuard autocast(
            device.type(), {.dtype = dtype, .enabled = dtype != torch::kFloat});
        output = model(data);
        loss = torch::nn::functional::cross_entropy(output, target);
      }
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
      std::printf("loss %.4f, scale %.0f\n", loss.item<double>(), scaler.get_scale());
    }
    std::printf("output %s, loss %s, weights %s\n", repr(output.scalar_type()).c_str(),
                repr(loss.scalar_type()).c_str(),
                repr(model->weight.scalar_type()).c_str());
  }
}
