// Tests the thread-safe operations on a single module and on the core settings.

#include <array>
#include <memory>
#include <string>
#include <tuple>

#include "catch.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/cuda/memory.hpp"
#include "sconce/devices.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/nn/lazy_conv_transpose.hpp"
#include "sconce/nn/multihead_attention.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/nn/transformer_model.hpp"
#include "sconce/optim/decay_groups.hpp"
#include "sconce/optim/swa_utils.hpp"
#include "sconce/repr.hpp"
#include "sconce/stopwatch.hpp"
#include "sconce/vision/models/resnet.hpp"
#include "sconce/vision/models/vision_transformer.hpp"
#include "support/at_once.hpp"
#include "support/same_bytes.hpp"

using sconce::test::check_at_once;
using sconce::test::same_bytes;
using sconce::test::Use;

namespace {

const torch::Tensor& first_of(const torch::Tensor& output) {
  return output;
}
const torch::Tensor& first_of(const std::tuple<torch::Tensor, torch::Tensor>& outputs) {
  return std::get<0>(outputs);
}

// The threads compare their predictions with a prediction made by this thread. The prediction made
// by this thread also initializes lazy layers.
template <class Holder, class... Inputs>
Use predicting(const char* what, const Holder& holder, const Inputs&... inputs) {
  const torch::NoGradGuard no_grad;
  const auto model = holder.ptr();
  model->eval();
  const torch::Tensor expected = first_of(model->forward(inputs...));
  return {what, [=] {
            const torch::NoGradGuard of_thread;
            return same_bytes(first_of(model->forward(inputs...)), expected);
          }};
}

}  // namespace

TEST_CASE(
    "four threads predict concurrently with the same module in evaluation mode under NoGradGuard") {
  namespace nn = sconce::nn;
  torch::manual_seed(0);
  const auto words = torch::randn({3, 2, 8});  // (L, N, E)
  const auto layer = nn::TransformerLayerOptions(8, 2).dim_feedforward(8);
  const auto options =
      nn::TransformerOptions(8, 2).num_encoder_layers(1).num_decoder_layers(1).dim_feedforward(8);
  const nn::LazyConv2d averaged_layer(nn::LazyConv2dOptions(2, 3));
  averaged_layer.ptr()->forward(torch::randn({1, 2, 5, 5}));
  using Averaged = sconce::optim::swa_utils::AveragedModel<nn::LazyConv2dImpl>;
  const torch::nn::ModuleHolder<Averaged> averaged(std::make_shared<Averaged>(averaged_layer));
  check_at_once({
      predicting("LayerNorm", nn::LayerNorm(8), words),
      predicting("MultiheadAttention", nn::MultiheadAttention(8, 2), words, words, words),
      predicting("TransformerEncoderLayer", nn::TransformerEncoderLayer(layer), words),
      predicting("TransformerDecoderLayer", nn::TransformerDecoderLayer(layer), words, words),
      predicting("TransformerEncoder",
                 nn::TransformerEncoder(nn::TransformerEncoderLayer(layer), 2), words),
      predicting("TransformerDecoder",
                 nn::TransformerDecoder(nn::TransformerDecoderLayer(layer), 2), words, words),
      predicting("Transformer", nn::Transformer(options), words, words),
      predicting("AveragedModel", averaged, torch::randn({1, 2, 5, 5})),
  });
}

TEST_CASE(
    "four threads predict concurrently with the same lazy layer after its first forward pass") {
  namespace nn = sconce::nn;
  torch::manual_seed(0);
  const auto rows = torch::randn({4, 2}), lines = torch::randn({4, 2, 5});
  const auto pictures = torch::randn({4, 2, 5, 5}), volumes = torch::randn({4, 2, 5, 5, 5});
  check_at_once({
      predicting("LazyLinear", nn::LazyLinear(3), rows),
      predicting("LazyConv1d", nn::LazyConv1d(nn::LazyConv1dOptions(2, 3)), lines),
      predicting("LazyConv2d", nn::LazyConv2d(nn::LazyConv2dOptions(2, 3)), pictures),
      predicting("LazyConv3d", nn::LazyConv3d(nn::LazyConv3dOptions(2, 3)), volumes),
      predicting("LazyConvTranspose1d",
                 nn::LazyConvTranspose1d(nn::LazyConvTranspose1dOptions(2, 3)), lines),
      predicting("LazyConvTranspose2d",
                 nn::LazyConvTranspose2d(nn::LazyConvTranspose2dOptions(2, 3)), pictures),
      predicting("LazyConvTranspose3d",
                 nn::LazyConvTranspose3d(nn::LazyConvTranspose3dOptions(2, 3)), volumes),
      predicting("LazyBatchNorm1d", nn::LazyBatchNorm1d(), rows),
      predicting("LazyBatchNorm2d", nn::LazyBatchNorm2d(), pictures),
      predicting("LazyBatchNorm3d", nn::LazyBatchNorm3d(), volumes),
  });
}

TEST_CASE("four threads predict concurrently with the same image model") {
  namespace models = sconce::vision::models;
  torch::manual_seed(0);
  const auto pictures = torch::randn({2, 3, 16, 16});
  const models::VisionTransformerOptions small = {.image_size = 16,
                                                  .patch_size = 8,
                                                  .num_layers = 1,
                                                  .num_heads = 2,
                                                  .hidden_dim = 8,
                                                  .mlp_dim = 8,
                                                  .num_classes = 2};
  check_at_once({
      predicting("ResNet",
                 models::ResNet(models::ResNetBlock::basic, std::array<int64_t, 4>{1, 1, 1, 1},
                                models::ResNetOptions{.num_classes = 2}),
                 pictures),
      predicting("VisionTransformer", models::VisionTransformer(small), pictures),
  });
}

TEST_CASE("four threads read the same module concurrently") {
  torch::manual_seed(0);
  torch::nn::Sequential net(sconce::nn::LazyLinear(3), sconce::nn::LayerNorm(3));
  const torch::nn::Module& module = *net;
  const auto layer = net[0]->as<sconce::nn::LazyLinearImpl>();
  const std::string text = sconce::repr(module);
  const auto tensor = torch::randn({2, 3});
  const std::string numbers = sconce::repr(tensor);
  check_at_once({
      {"repr", [&] { return sconce::repr(module) == text && sconce::repr(tensor) == numbers; }},
      {"state_dict", [&] { return sconce::nn::state_dict(module).size() == 4; }},
      {"has_uninitialized_params", [&] { return sconce::nn::has_uninitialized_params(module); }},
      {"is_initialized", [&] { return !layer->is_initialized(); }},
      {"repr_name", [&] { return layer->repr_name() == "LazyLinear"; }},
      {"decay_groups", [&] { return sconce::optim::decay_groups(module, 0.1).groups.size() == 2; }},
  });
}

TEST_CASE("four threads run the same module concurrently, each with its own autocast setting") {
  torch::manual_seed(0);
  const auto layer = torch::nn::Linear(8, 8).ptr();
  const auto x = torch::randn({2, 8});
  const auto type = [&] {
    const torch::NoGradGuard no_grad;
    return layer->forward(x).scalar_type();
  };
  check_at_once({
      {"AutocastGuard",
       [&] {
         // ThreadSanitizer does not recognize the locks of LibTorch's cache, which all threads
         // share.
         const sconce::amp::AutocastGuard autocast(torch::kCPU, {.cache_enabled = false});
         return type() == torch::kBFloat16;
       }},
      {"no AutocastGuard", [&] { return type() == torch::kFloat; }},
  });
}

TEST_CASE("four threads query devices, memory usage, and a stopwatch concurrently") {
  const sconce::Stopwatch stopwatch;
  check_at_once({
      {"Stopwatch", [&] { return stopwatch.seconds() >= 0; }},
      {"devices",
       [] {
         sconce::synchronize(sconce::cpu());
         return sconce::num_gpus() >= 0 && !sconce::try_all_gpus().empty() &&
                (sconce::num_gpus() > 0) == sconce::try_gpu().is_cuda();
       }},
      {"memory_stats", [] { return sconce::cuda::memory_stats(sconce::cpu()).allocated > 0; }},
  });
}
