// GPU benchmarks for matrix products, transfers, and data loading. Without a GPU, the same code
// runs on the CPU to verify that both languages compute the same values.

#include <torch/torch.h>

#include <memory>

#include "sconce/backends.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/devices.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/trainer.hpp"
#include "workload.hpp"

namespace bench {

namespace {

using torch::Tensor;

void wait_for_gpus() {
  for (const auto& device : sconce::try_all_gpus()) sconce::synchronize(device);
}

Tensor square(int64_t size, torch::Device device, torch::ScalarType dtype) {
  return torch::randn({size, size}).to(device, dtype);
}

// Multiplies two square matrices with `size` rows. The operands and the result are on the device.
Workload product_of(int64_t size, torch::ScalarType dtype) {
  torch::manual_seed(0);
  const auto a = square(size, sconce::try_gpu(), dtype), b = square(size, sconce::try_gpu(), dtype);
  auto c = torch::mm(a, b);
  return {[=]() mutable { torch::mm_out(c, a, b); }, {c[0][0].item<double>()}, wait_for_gpus};
}

Workload product_fp32(int64_t size) {
  return product_of(size, torch::kFloat);
}

Workload product_tf32(int64_t size) {
  sconce::backends::set_flags({.float32_matmul_precision = "high"});
  return product_of(size, torch::kFloat);
}

Workload product_bf16(int64_t size) {
  return product_of(size, torch::kBFloat16);
}

// Computes one product on each of two devices, or both products on the same device if there is only
// one device.
Workload two_products(int64_t size) {
  torch::manual_seed(0);
  const auto devices = sconce::try_all_gpus();
  const auto a = square(size, devices.front(), torch::kFloat);
  const auto b = square(size, devices.at(devices.size() > 1 ? 1 : 0), torch::kFloat);
  const auto call = [=] {
    torch::mm(a, a);
    torch::mm(b, b);
  };
  return {call,
          {torch::mm(a, a)[0][0].item<double>(), torch::mm(b, b)[0][0].item<double>()},
          wait_for_gpus};
}

// Copies `size` values between pinned memory and the device.
template <bool to_host>
Workload transfer(int64_t size) {
  const auto device = sconce::try_gpu();
  auto host = torch::ones(size);
  if (device.is_cuda()) host = host.pin_memory();
  const auto there = torch::ones(size, device);
  const auto from = to_host ? there : host, to = to_host ? host : there;
  return {[=] { to.copy_(from, /*non_blocking=*/true); }, {to.sum().item<double>()}, wait_for_gpus};
}

struct Rows {
  sconce::data::Dataset dataset;
  int64_t size() const { return dataset.data.size(0); }
  sconce::data::Dataset get(int64_t index) const {
    return {dataset.data[index], dataset.target[index]};
  }
};

// Trains a perceptron for one epoch in batches of 256 images. The images either are already on the
// device or are read and copied by two threads. The benchmark compares the loss of the first batch
// in C++ and Python.
template <bool on_device>
Workload epoch_of(int64_t pictures) {
  torch::manual_seed(0);
  torch::nn::Sequential net;
  net->push_back(torch::nn::Flatten());
  net->push_back(torch::nn::Linear(784, 256));
  net->push_back(torch::nn::ReLU());
  net->push_back(torch::nn::Linear(256, 10));
  const auto device = sconce::try_gpu();
  auto data = torch::randn({pictures, 28, 28}), target = torch::arange(pictures).remainder(10);
  const double loss = torch::nn::functional::cross_entropy(net->forward(data.slice(0, 0, 256)),
                                                           target.slice(0, 0, 256))
                          .item<double>();
  net->to(device);
  if (on_device) data = data.to(device), target = target.to(device);
  const auto optimizer = std::make_shared<sconce::optim::SGD>(net->parameters(), 0.01);
  const auto trainer = std::make_shared<sconce::Trainer>(sconce::TrainerOptions{.device = device});
  const auto epoch = [=](const auto& batches) {
    return Workload{
        [=]() mutable { trainer->fit_epoch(net, *optimizer, batches); }, {loss}, wait_for_gpus};
  };
  if constexpr (on_device) {
    return epoch(sconce::data::Batches({data, target}, {.batch_size = 256, .shuffle = true}));
  } else {
    return epoch(sconce::data::DataLoader(
        Rows{{data, target}},
        {.batch_size = 256, .shuffle = true, .num_workers = 2, .device = device}));
  }
}

}  // namespace

Workloads gpu() {
  return {{"product", product_fp32},      {"product_tf32", product_tf32},
          {"product_bf16", product_bf16}, {"two_products", two_products},
          {"to_device", transfer<false>}, {"to_host", transfer<true>},
          {"fed_epoch", epoch_of<false>}, {"held_epoch", epoch_of<true>}};
}

}  // namespace bench
