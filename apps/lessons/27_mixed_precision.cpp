// Mixed precision: autocast computes in 16 bits, and a scaler keeps small gradients above 0.
// Covers: T4.amp
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

using sconce::median_seconds, sconce::repr;

struct SimpleNNImpl : torch::nn::Module {
  torch::nn::Linear fc1, fc2;
  explicit SimpleNNImpl(int64_t hidden) : fc1(3, hidden), fc2(hidden, 2) {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::relu(fc1(x))); }
};
TORCH_MODULE(SimpleNN);

struct Setup {
  torch::ScalarType dtype = torch::kHalf;
  sconce::amp::GradScalerOptions scaler = {};  // its device is autocast's, too
  int64_t batch_size = 25, hidden = 10;
  bool print = true;
};

// Trains a model on the best device for an epoch, with the data wherever they lie.
void train(const sconce::data::Dataset& dataset, const Setup& setup) {
  torch::manual_seed(0);
  SimpleNN model(setup.hidden);
  model->to(sconce::try_gpu());
  torch::nn::CrossEntropyLoss loss_fn;
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.01);
  const sconce::data::Batches dataloader(dataset, {.batch_size = setup.batch_size});
  torch::Tensor output, loss;
  sconce::amp::GradScaler scaler(setup.scaler);  // T4.amp
  for (auto [data, target] : dataloader) {
    optimizer.zero_grad();
    {
      sconce::amp::AutocastGuard autocast(
          setup.scaler.device,
          {.dtype = setup.dtype, .enabled = setup.dtype != torch::kFloat});
      output = model(data);
      loss = loss_fn(output, target);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    if (!setup.print) continue;
    std::printf("  loss %.4f, scale %.0f\n", loss.item<double>(), scaler.get_scale());
  }
  if (!setup.print) return;
  std::cout << "  output " << repr(output.scalar_type()) << ", loss "
            << repr(loss.scalar_type()) << ", weights "
            << repr(model->fc1->weight.scalar_type()) << '\n';
}

int main() {
  torch::manual_seed(0);
  sconce::data::Dataset dataset = {torch::randn({100, 3}), torch::randint(0, 2, {100})};
  std::cout << "Beyond the cells:\nas T4 has it\n";
  // note: T4 defines neither loader, loss nor optimizer, and its data never move, which fails on a
  // GPU; without one its scaler and its autocast, both for GPUs, warn and turn themselves off. Its
  // torch.cuda.amp is deprecated for torch.amp.
  try {
    train(dataset, {});
  } catch (const c10::Error&) {
    std::cout << "  refused: the data are on " << dataset.data.device() << '\n';
  }
  const auto device = sconce::try_gpu();
  dataset = {dataset.data.to(device), dataset.target.to(device)};
  for (const auto dtype : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    std::cout << repr(dtype) << " on " << device << '\n';
    train(dataset, {dtype, {.device = device.type(), .enabled = dtype == torch::kHalf}});
  }
  // Too large a scale makes gradients inf: such a step is skipped and the scale halved,
  // until it fits; after growth_interval good steps it doubles.
  std::cout << "from a scale of 2**24\n";
  train(dataset, {torch::kHalf,
                  {.device = device.type(), .init_scale = 1 << 24, .growth_interval = 2},
                  /*batch_size=*/13});
  for (const auto dtype : {torch::kFloat, torch::kBFloat16}) {
    const Setup wide = {
        dtype, {.device = device.type(), .enabled = false}, 25, 4096, false};
    const double seconds = median_seconds([&] { train(dataset, wide); }, device, 3);
    std::printf("~ a wide model's step in %s: %.3f ms\n", repr(dtype).c_str(),
                seconds / 4e-3);
  }
}
