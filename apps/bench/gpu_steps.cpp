// Training steps on a GPU in float32, TF32 and bfloat16, eager and captured as a CUDA graph.
// Without a GPU the same code runs on the CPU, to show that both languages compute the same
// numbers.

#include <torch/torch.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sconce/amp/autocast.hpp"
#include "sconce/backends.hpp"
#include "sconce/devices.hpp"
#include "sconce/nn/layer_norm.hpp"
#include "sconce/nn/memory_format.hpp"
#include "sconce/nn/transformer.hpp"
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

// SimpleNN on `size` rows.
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

struct GPT : torch::nn::Module {
  static constexpr int64_t symbols = 65, features = 384, heads = 6, layers = 6;

  GPT(int64_t context, torch::Device device) {
    tokens = register_module("tokens", torch::nn::Embedding(symbols, features));
    places = register_module("places", torch::nn::Embedding(context, features));
    const auto block = sconce::nn::TransformerEncoderLayerOptions(features, heads)
                           .dim_feedforward(4 * features)
                           .dropout(0)
                           .activation(torch::kGELU)
                           .batch_first(true)
                           .norm_first(true);
    for (int64_t i = 0; i < layers; ++i) {
      blocks.push_back(
          register_module("block" + std::to_string(i), sconce::nn::TransformerEncoderLayer(block)));
    }
    norm = register_module("norm", sconce::nn::LayerNorm(features));
    head = register_module("head", torch::nn::Linear(features, symbols));
    to(device);
    mask =
        torch::full({context, context}, -std::numeric_limits<float>::infinity()).triu(1).to(device);
  }

  torch::Tensor forward(const torch::Tensor& x) {  // (N, context) to (N * context, symbols)
    auto h = tokens(x) + places->weight;
    for (auto& block : blocks) h = block->forward(h, {.src_mask = mask, .is_causal = true});
    return head(norm(h).flatten(0, 1));
  }

  torch::nn::Embedding tokens = nullptr, places = nullptr;
  std::vector<sconce::nn::TransformerEncoderLayer> blocks = {};
  sconce::nn::LayerNorm norm = nullptr;
  torch::nn::Linear head = nullptr;
  torch::Tensor mask = {};
};

// A GPT of 11 million parameters on 16 texts of `size` tokens.
template <Precision precision, Run run>
Workload gpt(int64_t size) {
  torch::manual_seed(0);
  const auto device = sconce::try_gpu();
  const auto net = std::make_shared<GPT>(size, device);
  const auto optimizer = std::make_shared<sconce::optim::AdamW>(
      net->parameters(), torch::optim::AdamWOptions(3e-4),
      sconce::optim::ExtraOptions{.kernels = sconce::optim::Kernels::fused});
  const auto text = torch::randint(GPT::symbols, {16, size + 1});
  return steps_of<precision, run>(
      net, optimizer, {text.slice(1, 0, size).to(device), text.slice(1, 1).flatten().to(device)});
}

// A ResNet-18 on `size` pictures of 96 x 96, channels_last.
template <Precision precision, Run run>
Workload resnet_on_gpu(int64_t size) {
  torch::manual_seed(0);
  const auto device = sconce::try_gpu();
  const auto net = sconce::vision::models::resnet18({.num_classes = 10}).ptr();
  const auto x = torch::randn({size, 3, 96, 96});
  net->to(device);
  sconce::nn::to_memory_format(*net, torch::MemoryFormat::ChannelsLast);
  const auto optimizer = std::make_shared<sconce::optim::SGD>(net->parameters(), 0.01);
  return steps_of<precision, run>(net, optimizer,
                                  {x.to(device).contiguous(torch::MemoryFormat::ChannelsLast),
                                   torch::arange(size).remainder(10).to(device)});
}

}  // namespace

Workloads gpu_steps() {
  constexpr auto fp32 = Precision::fp32, tf32 = Precision::tf32, bf16 = Precision::bf16;
  return {{"sgd", simple_net<Run::eager>},
          {"sgd_captured", simple_net<Run::captured>},
          {"gpt_fp32", gpt<fp32, Run::eager>},
          {"gpt_fp32_captured", gpt<fp32, Run::captured>},
          {"gpt_tf32", gpt<tf32, Run::eager>},
          {"gpt_tf32_captured", gpt<tf32, Run::captured>},
          {"gpt_bf16", gpt<bf16, Run::eager>},
          {"gpt_bf16_captured", gpt<bf16, Run::captured>},
          {"resnet_fp32", resnet_on_gpu<fp32, Run::eager>},
          {"resnet_fp32_captured", resnet_on_gpu<fp32, Run::captured>},
          {"resnet_tf32", resnet_on_gpu<tf32, Run::eager>},
          {"resnet_tf32_captured", resnet_on_gpu<tf32, Run::captured>},
          {"resnet_bf16", resnet_on_gpu<bf16, Run::eager>},
          {"resnet_bf16_captured", resnet_on_gpu<bf16, Run::captured>}};
}

}  // namespace bench
