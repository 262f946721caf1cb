// Runs training steps on a GPU in float32, TF32, and bfloat16, both eagerly and as CUDA graphs.
// Without a GPU, the same code runs on the CPU to verify that both languages compute the same
// values.

#include <torch/torch.h>

#include <memory>

#include "gpt_model.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/backends.hpp"
#include "sconce/devices.hpp"
#include "sconce/nn/memory_format.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/vision/models/resnet.hpp"
#include "training_steps.hpp"

namespace bench {

namespace {

enum class Precision { fp32, tf32, bf16 };

template <Precision precision, Run run, class Net, class Optimizer>
Workload steps_of(const std::shared_ptr<Net>& net, const std::shared_ptr<Optimizer>& optimizer,
                  const Tensors& batch) {
  constexpr bool is_tf32 = precision == Precision::tf32;
  sconce::backends::set_flags(
      {.float32_matmul_precision = is_tf32 ? "high" : "highest", .cudnn_allow_tf32 = is_tf32});
  const auto compute_loss = [net](const Tensors& tensors) {
    const sconce::amp::AutocastGuard autocast(
        tensors[0].device().type(),
        {.dtype = torch::kBFloat16, .enabled = precision == Precision::bf16});
    return torch::nn::functional::cross_entropy(net->forward(tensors[0]), tensors[1]);
  };
  auto workload = training_steps<run>(optimizer, batch, compute_loss);
  workload.wait = [device = batch[0].device()] { sconce::synchronize(device); };
  return workload;
}

// Trains SimpleNN on a batch with `size` rows.
template <Run run>
Workload simple_net(int64_t size) {
  torch::manual_seed(0);
  torch::nn::Sequential net;
  net->push_back(torch::nn::Linear(3, 10));
  net->push_back(torch::nn::ReLU());
  net->push_back(torch::nn::Linear(10, 2));
  const auto device = sconce::try_gpu();
  net->to(device);
  const auto optimizer = std::make_shared<sconce::optim::SGD>(net->parameters(), 0.01);
  return steps_of<Precision::fp32, run>(
      net.ptr(), optimizer,
      {torch::randn({size, 3}).to(device), torch::arange(size).remainder(2).to(device)});
}

constexpr GPTOptions small_gpt{
    .texts = 16, .symbols = 65, .features = 384, .heads = 6, .layers = 6};
constexpr GPTOptions gpt2_small{
    .texts = 8, .symbols = 50257, .features = 768, .heads = 12, .layers = 12, .tied = true};

// Trains a GPT on sequences of `size` tokens.
template <const GPTOptions& options, Precision precision, Run run>
Workload gpt(int64_t size) {
  torch::manual_seed(0);
  const auto device = sconce::try_gpu();
  const auto net = std::make_shared<GPT>(options, size);
  net->to(device);
  const auto optimizer = std::make_shared<sconce::optim::AdamW>(
      net->parameters(), torch::optim::AdamWOptions(3e-4),
      sconce::optim::ExtraOptions{.kernels = sconce::optim::Kernels::fused});
  const auto text = torch::randint(options.symbols, {options.texts, size + 1});
  return steps_of<precision, run>(
      net, optimizer, {text.slice(1, 0, size).to(device), text.slice(1, 1).flatten().to(device)});
}

// Trains a ResNet on square images with `size` pixels per side, in channels_last format.
template <auto make, int64_t classes, int64_t edge, Precision precision, Run run>
Workload resnet_on_gpu(int64_t size) {
  torch::manual_seed(0);
  const auto device = sconce::try_gpu();
  const auto net = make({.num_classes = classes}).ptr();
  const auto x = torch::randn({size, 3, edge, edge});
  net->to(device);
  sconce::nn::to_memory_format(*net, torch::MemoryFormat::ChannelsLast);
  const auto optimizer = std::make_shared<sconce::optim::SGD>(net->parameters(), 0.01);
  return steps_of<precision, run>(net, optimizer,
                                  {x.to(device).contiguous(torch::MemoryFormat::ChannelsLast),
                                   torch::arange(size).remainder(classes).to(device)});
}

template <Precision precision, Run run>
Workload resnet18(int64_t size) {
  return resnet_on_gpu<sconce::vision::models::resnet18, 10, 96, precision, run>(size);
}

template <Precision precision, Run run>
Workload resnet50(int64_t size) {
  return resnet_on_gpu<sconce::vision::models::resnet50, 1000, 224, precision, run>(size);
}

}  // namespace

Workloads gpu_steps() {
  constexpr auto fp32 = Precision::fp32, tf32 = Precision::tf32, bf16 = Precision::bf16;
  return {{"sgd", simple_net<Run::eager>},
          {"sgd_captured", simple_net<Run::captured>},
          {"gpt_fp32", gpt<small_gpt, fp32, Run::eager>},
          {"gpt_fp32_captured", gpt<small_gpt, fp32, Run::captured>},
          {"gpt_tf32", gpt<small_gpt, tf32, Run::eager>},
          {"gpt_tf32_captured", gpt<small_gpt, tf32, Run::captured>},
          {"gpt_bf16", gpt<small_gpt, bf16, Run::eager>},
          {"gpt_bf16_captured", gpt<small_gpt, bf16, Run::captured>},
          {"resnet_fp32", resnet18<fp32, Run::eager>},
          {"resnet_fp32_captured", resnet18<fp32, Run::captured>},
          {"resnet_tf32", resnet18<tf32, Run::eager>},
          {"resnet_tf32_captured", resnet18<tf32, Run::captured>},
          {"resnet_bf16", resnet18<bf16, Run::eager>},
          {"resnet_bf16_captured", resnet18<bf16, Run::captured>},
          {"gpt2_bf16", gpt<gpt2_small, bf16, Run::eager>},
          {"gpt2_bf16_captured", gpt<gpt2_small, bf16, Run::captured>},
          {"resnet50_bf16", resnet50<bf16, Run::eager>},
          {"resnet50_bf16_captured", resnet50<bf16, Run::captured>}};
}

}  // namespace bench
