#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "program/interpreted_steps.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/captured_step.hpp"
#include "sconce/devices.hpp"
#include "sconce/metrics/mean_metric.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/nn/transformer.hpp"
#include "sconce/optim/adagrad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/nadam.hpp"
#include "sconce/optim/rmsprop.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/program/inductor.hpp"
#include "support/draw.hpp"
#include "support/error_of.hpp"
#include "support/require_gpu.hpp"
#include "support/temp_dir.hpp"

// Runs random training steps with an eager loop and with a CapturedStep. After each call, all
// tensors must be bitwise identical.
namespace captured_step_random {

using sconce::CapturedStep;
using sconce::StepCompiler;
using sconce::StepMode;
using sconce::amp::AutocastGuard;
using sconce::amp::GradScaler;
using sconce::optim::ExponentialMovingAverage;
using sconce::optim::Kernels;
using sconce::test::Draw;
using sconce::test::error_of;
using torch::Tensor;
using Tensors = std::vector<Tensor>;
namespace nn = torch::nn;
namespace optim = sconce::optim;

namespace {

constexpr int calls_of_a_step = 20;

// Layers for tensors of shape (rows, length, width).

using Layer = std::function<Tensor(const Tensor&)>;

// Creates the modules for the layers.
struct LayerMaker {
  template <class Module>
  Module keep(Module module) {
    owner.register_module("layer" + std::to_string(owner.children().size()), module);
    return module;
  }

  nn::Module& owner;
  Draw& draw;
  int64_t width;
  torch::Device device;
};

Layer linear(LayerMaker& make) {
  static const std::vector<Layer> activations = {
      [](const Tensor& x) { return x.relu(); },
      [](const Tensor& x) { return Tensor(x).relu_(); },
      [](const Tensor& x) { return torch::gelu(x); },
      [](const Tensor& x) { return torch::silu(x); },
      [](const Tensor& x) { return torch::elu(x); },
      [](const Tensor& x) { return torch::softplus(x); },
      [](const Tensor& x) { return torch::leaky_relu(x, 0.1); },
      [](const Tensor& x) { return x.tanh(); },
      [](const Tensor& x) { return x.sigmoid(); }};
  const nn::LinearOptions options(make.width, make.width);
  auto layer = make.keep(nn::Linear(nn::LinearOptions(options).bias(!make.draw.one_in(4))));
  return [layer, activation = make.draw.from(activations)](const Tensor& x) mutable {
    return activation(layer->forward(x));
  };
}

// Returns a layer for tensors of shape (rows, width, length).
template <class Module>
Layer over_channels(Module module) {
  return [module](const Tensor& x) mutable {
    return module->forward(x.transpose(1, 2)).transpose(1, 2);
  };
}

// Returns a layer for tensors of shape (rows, width).
template <class Module>
Layer over_rows(Module module) {
  return [module](const Tensor& x) mutable {
    return module->forward(x.reshape({-1, x.size(2)})).view_as(x);
  };
}

Layer conv1d(LayerMaker& make) {
  const auto groups = make.draw.of<int64_t>({1, 1, 2});
  return over_channels(make.keep(
      nn::Conv1d(nn::Conv1dOptions(make.width, make.width, 3).padding(1).groups(groups))));
}

Layer conv_transpose1d(LayerMaker& make) {
  return over_channels(make.keep(
      nn::ConvTranspose1d(nn::ConvTranspose1dOptions(make.width, make.width, 3).padding(1))));
}

Layer conv2d(LayerMaker& make) {
  auto there = make.keep(nn::Conv2d(nn::Conv2dOptions(1, 2, 3).padding(1)));
  auto back = make.keep(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(2, 1, 3).padding(1)));
  return [there, back](const Tensor& x) mutable {
    return back->forward(there->forward(x.unsqueeze(1)).relu()).squeeze(1);
  };
}

template <class Module>
Layer plain(Module module) {
  return [module](const Tensor& x) mutable { return module->forward(x); };
}

Layer layer_norm(LayerMaker& make) {
  return plain(make.keep(nn::LayerNorm(nn::LayerNormOptions({make.width}))));
}

Layer group_norm(LayerMaker& make) {
  return over_channels(make.keep(nn::GroupNorm(nn::GroupNormOptions(2, make.width))));
}

// During a capture, simulated GPUs update the running statistics one extra time.
Layer batch_norm(LayerMaker& make) {
  const bool has_sums = !make.draw.one_in(4) && !make.device.is_cuda();
  const auto options = nn::BatchNorm1dOptions(make.width).track_running_stats(has_sums);
  auto layer = make.keep(nn::BatchNorm1d(options));
  const Layer norm = make.draw.one_in(2) ? over_channels(layer) : over_rows(layer);
  return [norm](const Tensor& x) { return x.size(0) * x.size(1) < 2 ? x * 1 : norm(x); };
}

Layer dropout(LayerMaker& make) {
  return plain(make.keep(nn::Dropout(0.3)));
}

Layer dropout2d(LayerMaker& make) {
  auto layer = make.keep(nn::Dropout2d(0.3));
  return [layer](const Tensor& x) mutable { return layer->forward(x.unsqueeze(0)).squeeze(0); };
}

Layer encoder_layer(LayerMaker& make) {
  auto options = sconce::nn::TransformerEncoderLayerOptions(make.width, 2);
  options.dim_feedforward(2 * make.width).dropout(make.draw.of({0.0, 0.1})).batch_first(true);
  options.norm_first(make.draw.one_in(2));
  auto layer = make.keep(sconce::nn::TransformerEncoderLayer(options));
  return [layer](const Tensor& x) mutable { return layer->forward(x); };
}

Layer dot_product_attention(LayerMaker& make) {
  auto layer = make.keep(nn::Linear(make.width, 3 * make.width));
  return [layer, is_causal = make.draw.one_in(2)](const Tensor& x) mutable {
    const auto heads = layer->forward(x).unflatten(2, {2, -1}).transpose(1, 2).chunk(3, -1);
    return torch::scaled_dot_product_attention(heads[0], heads[1], heads[2], {}, 0, is_causal)
        .transpose(1, 2)
        .flatten(2);
  };
}

// The oneDNN LSTM is nondeterministic in bfloat16, so recurrent layers run in float32.
template <class Module>
Layer recurrent(Module module) {
  return [module](const Tensor& x) mutable {
    const AutocastGuard no_autocast(x.device().type(), {.enabled = false});
    return std::get<0>(module->forward(x.to(torch::kFloat)));
  };
}

Layer gru(LayerMaker& make) {
  return recurrent(make.keep(nn::GRU(nn::GRUOptions(make.width, make.width).batch_first(true))));
}

Layer lstm(LayerMaker& make) {
  const auto layers = make.draw.of<int64_t>({1, 2});
  return recurrent(make.keep(
      nn::LSTM(nn::LSTMOptions(make.width, make.width).batch_first(true).num_layers(layers))));
}

Layer rnn(LayerMaker& make) {
  return recurrent(make.keep(nn::RNN(nn::RNNOptions(make.width, make.width).batch_first(true))));
}

// When gradients are disabled, LibTorch's max_pool1d bypasses the dispatcher on the CPU.
Layer pooling(LayerMaker& make) {
  return [without_gradient = make.draw.one_in(3)](const Tensor& x) {
    const auto most = torch::max_pool1d(without_gradient ? x.detach() : x, 3, 1, 1);
    return most + torch::avg_pool1d(x, 3, 1, 1);
  };
}

Layer indexing(LayerMaker&) {
  return [](const Tensor& x) {
    const auto order = torch::arange(x.size(1) - 1, -1, -1, x.device());
    const auto turned = x.index({torch::indexing::Slice(), order});
    return torch::cat({turned, x.slice(1, 0, 0)}, 1) + x.cumsum(1).flip({2});
  };
}

// CUDA graphs cannot copy from host memory.
Layer constants(LayerMaker&) {
  return [](const Tensor& x) {
    const auto scale = x.is_cuda() ? torch::full({2}, 0.5, x.device()) : torch::tensor({0.5F, 2.F});
    const auto mask = torch::ones({x.size(1), x.size(1)}, x.device()).tril();
    return torch::matmul(mask / mask.sum(1, true), x * scale[0]) + x * scale[1];
  };
}

Layer in_place(LayerMaker&) {
  return [](const Tensor& x) {
    auto y = x.clone();
    y.select(2, 0).mul_(2);
    y.slice(2, 1).add_(1);
    y.transpose(1, 2).slice(1, 0, 1).fill_(0.5);
    return torch::where(y > 0.2, y, y * 0.1);
  };
}

// Casts a tensor repeatedly, both with and without modifying the tensor between the casts.
Layer casts(LayerMaker&) {
  return [](const Tensor& x) {
    auto y = x * 1;
    const auto half = torch::kBFloat16;
    const auto first = y.to(half), second = y.to(half);
    y.select(2, 0).mul_(2);
    auto written = y.to(half), third = y.to(half);
    written.add_(1);
    return x + (first + second + written + third + y.to(half)).to(x.scalar_type());
  };
}

Layer softmax(LayerMaker&) {
  return [](const Tensor& x) { return x.softmax(-1) + x.log_softmax(1).exp(); };
}

Layer random_numbers(LayerMaker& make) {
  static const std::vector<Layer> kinds = {
      [](const Tensor& x) { return x + torch::rand_like(x); },
      [](const Tensor& x) { return x + 0.1 * torch::randn(x.sizes(), x.device()); },
      [](const Tensor& x) { return x * torch::bernoulli(torch::full_like(x, 0.7)); },
      [](const Tensor& x) { return x + torch::empty_like(x).uniform_(-0.1, 0.1); },
      [](const Tensor& x) { return x * torch::randint_like(x, 1, 3); }};
  return make.draw.from(kinds);
}

struct LayerKind {
  const char* name;
  Layer (*make)(LayerMaker&);
};

const std::vector<LayerKind> layer_kinds = {{"linear", linear},
                                            {"linear", linear},
                                            {"conv1d", conv1d},
                                            {"conv transposed", conv_transpose1d},
                                            {"conv2d", conv2d},
                                            {"layer norm", layer_norm},
                                            {"group norm", group_norm},
                                            {"batch norm", batch_norm},
                                            {"batch norm", batch_norm},
                                            {"dropout", dropout},
                                            {"dropout", dropout},
                                            {"dropout", dropout2d},
                                            {"attention", encoder_layer},
                                            {"attention", dot_product_attention},
                                            {"gru", gru},
                                            {"lstm", lstm},
                                            {"rnn", rnn},
                                            {"pooling", pooling},
                                            {"indexing", indexing},
                                            {"constants", constants},
                                            {"in place", in_place},
                                            {"casts", casts},
                                            {"softmax", softmax},
                                            {"random numbers", random_numbers}};

using Loss = Tensor (*)(const Tensor& outputs, const Tensor& labels);

Tensor wide(const Tensor& labels, const Tensor& outputs) {
  return labels.to(torch::kFloat).unsqueeze(1).expand_as(outputs);
}

const std::vector<Loss> losses = {
    [](const Tensor& x, const Tensor& y) { return torch::mse_loss(x, wide(y, x)); },
    [](const Tensor& x, const Tensor& y) { return torch::smooth_l1_loss(x, wide(y, x)); },
    [](const Tensor& x, const Tensor& y) { return torch::cross_entropy_loss(x, y); },
    [](const Tensor& x, const Tensor& y) { return torch::nll_loss(x.log_softmax(1), y); },
    [](const Tensor& x, const Tensor& y) {
      const auto rows = torch::eye(x.size(1), x.device()).index_select(0, y);
      return torch::binary_cross_entropy_with_logits(x, rows);
    }};

// A random network, along with its loss function and batches.
class Net : public nn::Module {
 public:
  Net(Draw& draw, torch::Device device)
      : rows(1 + draw.below(6)),
        length_(1 + draw.below(6)),
        width_(4 * (1 + draw.below(4))),
        classes_(2 + draw.below(4)) {
    if (draw.one_in(3)) {
      kinds.insert("embedding");
      embedding_ = register_module("embedding", nn::Embedding(11, width_));
      if (draw.one_in(4)) embedding_->options.padding_idx(0);
    }
    LayerMaker make{*this, draw, width_, device};
    for (int64_t count = 1 + draw.below(5); count > 0; --count) {
      const auto& kind = draw.from(layer_kinds);
      kinds.insert(kind.name);
      layers_.push_back(kind.make(make));
    }
    head_ = register_module("head", nn::Linear(width_, classes_));
    loss_ = draw.from(losses);
  }

  Tensor forward(const Tensor& input) {
    Tensor x = embedding_ ? embedding_->forward(input) : input;
    for (const auto& layer : layers_) x = layer(x);
    return head_->forward(x.mean(1));
  }

  Tensor loss(const Tensor& input, const Tensor& labels) {
    return loss_(forward(input).to(torch::kFloat), labels);
  }

  Tensors batch(int64_t of_rows) const {
    const auto input = embedding_ ? torch::randint(11, {of_rows, length_})
                                  : torch::randn({of_rows, length_, width_});
    return {input, torch::randint(classes_, {of_rows})};
  }

  const int64_t rows;
  std::set<std::string> kinds = {};

 private:
  int64_t length_, width_, classes_;
  nn::Embedding embedding_ = nullptr;
  std::vector<Layer> layers_ = {};
  nn::Linear head_ = nullptr;
  Loss loss_ = nullptr;
};

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name, Draw& draw,
                                                 const Tensors& parameters,
                                                 const optim::ExtraOptions& extra) {
  if (name == "SGD") {
    const auto options = torch::optim::SGDOptions(0.05)
                             .momentum(draw.of({0.0, 0.9}))
                             .weight_decay(draw.of({0.0, 0.01}));
    return std::make_unique<optim::SGD>(parameters, options, extra);
  }
  if (name == "Adam") {
    const auto options = torch::optim::AdamOptions(0.01).amsgrad(draw.one_in(3));
    return std::make_unique<optim::Adam>(parameters, options, extra);
  }
  if (name == "Adagrad") {
    const auto options = torch::optim::AdagradOptions(0.05).lr_decay(draw.of({0.0, 0.1}));
    return std::make_unique<optim::Adagrad>(parameters, options, extra);
  }
  if (name == "RMSprop") {
    const auto options = torch::optim::RMSpropOptions(0.005).momentum(draw.of({0.0, 0.9}));
    return std::make_unique<optim::RMSprop>(parameters, options, extra);
  }
  if (name == "NAdam") {
    return std::make_unique<optim::NAdam>(parameters, optim::NAdamOptions(0.01), extra);
  }
  return std::make_unique<optim::AdamW>(parameters, torch::optim::AdamWOptions(0.01), extra);
}

std::unique_ptr<optim::lr_scheduler::LRScheduler> make_schedule(const std::string& name,
                                                                optim::Optimizer& optimizer,
                                                                bool cycle_momentum) {
  using namespace optim::lr_scheduler;
  if (name == "StepLR") return std::make_unique<StepLR>(optimizer, 3, 0.5);
  if (name == "cosine") return std::make_unique<CosineAnnealingLR>(optimizer, calls_of_a_step);
  if (name == "none") return nullptr;
  const OneCycleLROptions options{.total_steps = 2 * calls_of_a_step,
                                  .cycle_momentum = cycle_momentum};
  return std::make_unique<OneCycleLR>(optimizer, 0.02, options);
}

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

void append_tensors(NamedTensors& all, const std::string& name, const c10::IValue& value) {
  if (value.isTensor()) all.emplace_back(name, value.toTensor());
  if (value.isDouble()) all.emplace_back(name, torch::tensor(value.toDouble(), torch::kDouble));
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) append_tensors(all, name, item);
  }
  if (!value.isGenericDict()) return;
  for (const auto& item : value.toGenericDict()) {
    std::ostringstream key;
    key << name << "." << item.key();
    append_tensors(all, key.str(), item.value());
  }
}

// A random training step. Two steps created from the same seed are identical. CUDA graphs have
// additional requirements: the kernels must be fused, the learning rate must be on the GPU, and the
// host must not change anything.
class Training {
 public:
  Training(uint32_t seed, torch::Device on) : device(on) {
    Draw draw(seed);
    torch::manual_seed(seed);
    net = std::make_shared<Net>(draw, device);
    net->to(device);
    kinds = net->kinds;
    draw_precision(draw);
    draw_optimizer(draw);
    draw_update(draw);
    draw_host_objects(draw);
  }

  Tensors step(const Tensors& batch) {
    ++runs_on_host;
    if (!updates_inside_) return {part(batch[0], batch[1])};
    optimizer->zero_grad();
    Tensor sum;
    for (size_t i = 0; i < batch.size(); i += 2) {
      const auto loss = part(batch[i], batch[i + 1]);
      sum = i == 0 ? loss : sum + loss.detach();
    }
    update();
    return {sum};
  }

  void after_call(int call) {
    if (!updates_inside_ && (call + 1) % parts_ == 0) {
      update();
      optimizer->zero_grad();
    }
    if (schedule_ && !schedules_inside_) schedule_->step();
  }

  int64_t parts_of_batch() const { return updates_inside_ ? parts_ : 1; }
  double rate() const { return optimizer->param_groups()[0].options().get_lr(); }

  NamedTensors tensors(bool with_gradients) const {
    NamedTensors all;
    for (const auto& p : net->named_parameters()) {
      all.emplace_back(p.key(), p.value());
      if (with_gradients) all.emplace_back("gradient of " + p.key(), p.value().grad());
    }
    for (const auto& b : net->named_buffers()) all.emplace_back(b.key(), b.value());
    if (metric_) all.emplace_back("metric", metric_->sums());
    if (schedule_) append_tensors(all, "schedule", schedule_->state_dict());
    append_tensors(all, "optimizer", optimizer->state_dict());
    if (scaler) append_tensors(all, "scaler", scaler->state_dict());
    if (!average_) return all;
    for (const auto& a : average_->state_dict()) all.emplace_back("average." + a.key(), a.value());
    return all;
  }

  torch::Device device;
  std::shared_ptr<Net> net = nullptr;
  std::unique_ptr<optim::Optimizer> optimizer = nullptr;
  std::unique_ptr<GradScaler> scaler = nullptr;
  std::set<std::string> kinds = {};
  int runs_on_host = 0;

 private:
  void draw_precision(Draw& draw) {
    precision_ = draw.of<std::string>({"fp32", "fp32", "bf16", "bf16", "fp16"});
    kinds.insert("precision " + precision_);
    if (precision_ != "fp16" && !draw.one_in(3)) return;
    kinds.insert("scaler");
    scaler = std::make_unique<GradScaler>(sconce::amp::GradScalerOptions{
        .device = device.type(), .init_scale = 256, .growth_interval = 4});
  }

  // Unless the kernels are fused, a scaler decides on the host whether to step, so only a few steps
  // use this combination.
  void draw_optimizer(Draw& draw) {
    auto kernels =
        draw.of({Kernels::automatic, Kernels::automatic, Kernels::foreach, Kernels::for_loop});
    const bool may_read = draw.one_in(30);
    if (device.is_cuda() || (scaler && !may_read)) kernels = Kernels::automatic;
    if (scaler && kernels != Kernels::automatic) kinds.insert("scaler on the host");
    optim::ExtraOptions extra{.kernels = kernels};
    if (device.is_cuda()) extra.lr = torch::full({}, 0.01, device);
    std::vector<std::string> choices = {"SGD", "Adam", "AdamW", "Adagrad"};
    if (!scaler) choices.insert(choices.end(), {"RMSprop", "NAdam"});  // without fused kernels
    const std::string name = draw.from(choices);
    optimizer = make_optimizer(name, draw, net->parameters(), extra);
    kinds.insert(name);
    static const std::map<Kernels, std::string> names = {
        {Kernels::fused, "fused"}, {Kernels::foreach, "foreach"}, {Kernels::for_loop, "for_loop"}};
    kinds.insert("kernels " + names.at(optimizer->kernels()));
    const auto schedule = draw.of<std::string>({"none", "StepLR", "cosine", "OneCycleLR"});
    const bool has_betas = name.find("Adam") != std::string::npos;
    schedule_ = make_schedule(schedule, *optimizer, has_betas && !device.is_cuda());
    kinds.insert("schedule " + schedule);
  }

  void draw_update(Draw& draw) {
    clipping_ = draw.of<std::string>({"none", "norm", "value"});
    kinds.insert("clipping " + clipping_);
    parts_ = draw.of({1, 1, 1, 2, 3});
    updates_inside_ = !draw.one_in(5) || device.is_cuda();
    if (parts_ > 1) kinds.insert(updates_inside_ ? "accumulation" : "accumulation over calls");
    if (!draw.one_in(4) || device.is_cuda()) return;
    kinds.insert("average");
    average_ = std::make_unique<ExponentialMovingAverage>(*net);
  }

  // Randomly selects objects other than the network and the optimizer, such as a metric, whose
  // tensors the step may update.
  void draw_host_objects(Draw& draw) {
    schedules_inside_ = schedule_ && updates_inside_ && !device.is_cuda() && draw.one_in(3);
    if (schedules_inside_) kinds.insert("schedule inside");
    if (!draw.one_in(3)) return;
    kinds.insert("metric");
    metric_ = std::make_unique<sconce::metrics::MeanMetric>();
  }

  Tensor part(const Tensor& input, const Tensor& labels) {
    Tensor loss;
    {
      const auto dtype = precision_ == "fp16" ? torch::kHalf : torch::kBFloat16;
      const AutocastGuard autocast(device.type(),
                                   {.dtype = dtype, .enabled = precision_ != "fp32"});
      loss = net->loss(input, labels);
    }
    (scaler ? scaler->scale(loss) : loss).backward();
    if (metric_) metric_->update(loss.detach());
    return loss;
  }

  void update() {
    if (clipping_ != "none" && scaler) scaler->unscale_(*optimizer);
    if (clipping_ == "norm") sconce::nn::clip_grad_norm_(net->parameters(), 0.5);
    if (clipping_ == "value") sconce::nn::clip_grad_value_(net->parameters(), 0.05);
    if (scaler) {
      scaler->step(*optimizer);
      scaler->update();
    } else {
      optimizer->step();
    }
    if (average_) average_->update();
    if (schedules_inside_) schedule_->step();
  }

  std::unique_ptr<optim::lr_scheduler::LRScheduler> schedule_ = nullptr;
  std::unique_ptr<ExponentialMovingAverage> average_ = nullptr;
  std::unique_ptr<sconce::metrics::MeanMetric> metric_ = nullptr;
  bool schedules_inside_ = false;
  std::string precision_ = {}, clipping_ = {};
  int parts_ = 1;
  bool updates_inside_ = true;
};

// Changes that occur between two calls.

void set_rate(Training& training, Tensor&) {
  training.optimizer->param_groups()[0].options().set_lr(0.003);
  training.optimizer->write_lr();
}

void load_scaler(Training& training, Tensor&) {
  if (!training.scaler) return;
  const auto state = training.scaler->state_dict();
  state.toGenericDict().insert_or_assign("scale", 64.0);
  training.scaler->load_state_dict(state);
}

void thaw(Training& training, Tensor&) {
  for (auto& p : training.net->parameters()) p.requires_grad_(true);
}

void freeze(Training&, Tensor& p) {
  p.requires_grad_(false);
}

void replace_gradient(Training&, Tensor& p) {
  if (p.grad().defined()) p.mutable_grad() = p.grad() * 2;
}

void run_forward(Training& training, Tensor&) {
  training.net->forward(training.net->batch(training.net->rows)[0].to(training.device));
}

// Returns an arbitrary module, selected by the parameter's size, because the module that contains
// the parameter is unknown.
nn::Module& module_of(Training& training, const Tensor& p) {
  const auto modules = training.net->modules(/*include_self=*/false);
  return *modules[static_cast<size_t>(p.numel()) % modules.size()];
}

void change_mode(Training& training, Tensor& p) {
  auto& module = module_of(training, p);
  module.train(!module.is_training());
}

// Moves the parameter to a new group, which is appended to the optimizer's parameter groups.
void regroup(Training& training, Tensor& p) {
  auto& groups = training.optimizer->param_groups();
  for (auto& group : groups) {
    std::erase_if(group.params(), [&](const Tensor& other) { return other.is_same(p); });
  }
  torch::optim::OptimizerParamGroup added({p});
  added.set_options(groups[0].options().clone());
  training.optimizer->add_param_group(added);
}

void remove_from_group(Training& training, Tensor& p) {
  if (training.optimizer->param_groups()[0].params().size() < 2) return;
  auto& params = training.optimizer->param_groups()[0].params();
  std::erase_if(params, [&](const Tensor& other) { return other.is_same(p); });
}

struct Event {
  const char* name;
  bool on_gpus;  // a CUDA graph produces the correct result after this event
  void (*happen)(Training&, Tensor& parameter);
};

const std::vector<Event> events = {
    {"rate set", true, set_rate},
    {"parameter written", true, [](Training&, Tensor& p) { p.add_(0.01); }},
    {"parameter moved", true, [](Training&, Tensor& p) { p.set_data(p.clone()); }},
    {"parameter frozen", true, freeze},
    {"parameters thawed", true, thaw},
    {"mode changed", true, change_mode},
    {"group added", false, regroup},
    {"parameter removed", false, remove_from_group},
    {"gradients dropped", false, [](Training& t, Tensor&) { t.optimizer->zero_grad(); }},
    {"gradient dropped", false, [](Training&, Tensor& p) { p.mutable_grad().reset(); }},
    {"gradient replaced", false, replace_gradient},
    {"optimizer loaded", false,
     [](Training& t, Tensor&) { t.optimizer->load_state_dict(t.optimizer->state_dict()); }},
    {"scaler loaded", true, load_scaler},
    {"numbers drawn", true, [](Training& t, Tensor&) { torch::rand({3}, t.device); }},
    {"forward pass", true, run_forward}};

// Half of the calls are not followed by an event.
const Event* draw_event(Draw& draw, torch::Device device) {
  const auto& event = draw.from(events);
  return draw.one_in(2) || (device.is_cuda() && !event.on_gpus) ? nullptr : &event;
}

void let_happen(const Event& event, Training& training, int64_t which) {
  const torch::NoGradGuard no_grad;
  auto parameters = training.net->parameters();
  const auto count = static_cast<int64_t>(parameters.size());
  event.happen(training, parameters[static_cast<size_t>(which % count)]);
}

bool have_same_bits(const Tensor& a, const Tensor& b) {
  return a.nbytes() == 0 || std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

// Returns whether the two tensors are bitwise identical, treating NaNs at the same position as
// equal.
bool are_same(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const auto x = a.detach().cpu().contiguous(), y = b.detach().cpu().contiguous();
  if (have_same_bits(x, y)) return true;
  const auto without = [](const Tensor& of, const Tensor& nans) { return of.masked_fill(nans, 0); };
  return x.is_floating_point() && x.isnan().equal(y.isnan()) &&
         have_same_bits(without(x, x.isnan()), without(y, y.isnan()));
}

// Specifies how closely two tensors must agree. Tensors computed by the same kernels must match bit
// for bit. If the kernels differ, the relative norm of the difference must stay within a bound.
struct Agreement {
  bool operator()(const Tensor& a, const Tensor& b) const {
    if (tolerance == 0) return are_same(a, b);
    if (!a.defined() || !b.defined()) return a.defined() == b.defined();
    const auto x = a.detach().to(torch::kDouble), y = b.detach().to(torch::kDouble);
    if (!x.isfinite().equal(y.isfinite())) return false;
    const auto apart = (x - y).nan_to_num(0, 0, 0).norm().item<double>();
    return apart <= tolerance * x.nan_to_num(0, 0, 0).norm().item<double>();
  }

  double tolerance = 0;
};

std::string first_difference(const NamedTensors& expected, const NamedTensors& found) {
  if (expected.size() != found.size()) return "the number of tensors";
  for (size_t i = 0; i < found.size(); ++i) {
    if (!are_same(expected[i].second, found[i].second)) return found[i].first;
  }
  return {};
}

Tensor generator_state(torch::Device device) {
  return at::globalContext().defaultGenerator(device).get_state();
}

// The outcome of one call and the event that follows it.
struct Call {
  bool is_refused() const { return error.find("expected a step that can be") != error.npos; }

  Tensors outputs = {};
  std::string error = {}, later_error = {};
  Tensor generator = {};
};

std::string difference_of(const Call& expected, const Call& found, const Agreement& agree) {
  if (expected.error != found.error || expected.later_error != found.later_error) {
    return "the error: " + expected.error + " | " + found.error + " | " + expected.later_error +
           " | " + found.later_error;
  }
  if (!are_same(expected.generator, found.generator)) return "the generator";
  if (expected.outputs.size() != found.outputs.size()) return "the number of outputs";
  for (size_t i = 0; i < found.outputs.size(); ++i) {
    if (!agree(expected.outputs[i], found.outputs[i])) {
      return c10::str("the output, ", expected.outputs[i], " and ", found.outputs[i]);
    }
  }
  return {};
}

struct Outcome {
  std::string difference = {};          // empty if there is no difference
  std::string refusal = {};             // empty if the step was captured
  std::string error = {};               // the error from the last call, if it threw
  std::set<std::string> kinds = {};     // the kinds of parts and events in the step
  std::set<std::string> replayed = {};  // the kinds that a replay contained or followed
  int replays = 0;
  bool is_16_bit = false;  // some kernels compute in 16 bits
};

// The compiler for the random steps (null if the steps are not compiled) and related settings.
struct Compiling {
  std::shared_ptr<StepCompiler> compiler = {};
  bool with_events = true;  // most events cause another capture
  uint32_t first_seed = 0;
  // The maximum number of 16-bit steps whose losses may exceed the tolerance. Some losses are
  // chaotic. Over 20 steps, rounding to 16 bits changes these losses by up to 32%, even in the
  // eager loop.
  int most_apart = 0;
};

// Runs one random step twice: as a captured step and eagerly.
class Comparison {
 public:
  Comparison(uint32_t seed, torch::Device device, const Compiling& compiling)
      : seed_(seed),
        with_events_(compiling.with_events),
        draw_(seed + 77777),
        eager_(seed, device),
        captured_(seed, device),
        step_(device, [this](const Tensors& batch) { return captured_.step(batch); },
              {.num_warmup_iters = 1 + static_cast<int>(seed % 3),
               .modules = {captured_.net},
               .compiler = compiling.compiler}) {
    outcome_.is_16_bit =  // "casts" computes in bfloat16 at every precision setting
        !captured_.kinds.contains("precision fp32") || captured_.kinds.contains("casts");
    if (compiling.compiler) agree_.tolerance = outcome_.is_16_bit ? 1e-2 : 1e-5;
    outcome_.kinds = captured_.kinds;
  }

  Outcome run() {
    for (int i = 0; i < calls_of_a_step && outcome_.difference.empty(); ++i) {
      call(i);
      if (!outcome_.refusal.empty()) break;
    }
    if (is_finite()) outcome_.kinds.insert("finite");
    return outcome_;
  }

 private:
  bool is_finite() const {
    const auto parameters = captured_.net->parameters();
    return std::all_of(parameters.begin(), parameters.end(),
                       [](const Tensor& p) { return p.isfinite().all().item<bool>(); });
  }

  void call(int i) {
    torch::manual_seed(100 * seed_ + 2 * static_cast<uint64_t>(i));
    const auto batch = draw_batch(i > 0);
    const auto* drawn = draw_event(draw_, eager_.device);
    const auto* event = with_events_ ? drawn : nullptr;
    const int64_t which = draw_.below(1000);
    const auto make = [&](Training& training, const CapturedStep::Step& step) {
      Call made;
      torch::manual_seed(100 * seed_ + 2 * static_cast<uint64_t>(i) + 1);
      made.error = error_of([&] { made.outputs = step(batch); });
      if (made.is_refused()) return made;
      made.later_error = error_of([&] {
        training.after_call(i);
        if (event != nullptr) let_happen(*event, training, which);
      });
      made.generator = generator_state(training.device);
      return made;
    };
    const int runs_before = captured_.runs_on_host;
    const double rate_before = captured_.rate();
    const auto found = make(captured_, [this](const Tensors& given) { return step_(given); });
    if (found.is_refused()) return refuse(found.error);
    note_replay(found, captured_.runs_on_host == runs_before, rate_before);
    if (event != nullptr) outcome_.kinds.insert(event->name);
    const auto expected = make(eager_, [this](const Tensors& given) {
      Tensors fresh;
      for (const auto& tensor : given) fresh.push_back(tensor.clone());
      return eager_.step(fresh);
    });
    outcome_.difference = difference_of(expected, found, agree_);
    if (agree_.tolerance == 0) compare_tensors();
    if (!outcome_.difference.empty()) outcome_.difference += ", in call " + std::to_string(i);
  }

  // A replay on a GPU does not restore gradients that an eager step has replaced.
  void compare_tensors() {
    const bool with_gradients = !captured_.device.is_cuda() || !outcome_.kinds.contains("shape");
    if (!outcome_.difference.empty()) return;
    outcome_.difference =
        first_difference(eager_.tensors(with_gradients), captured_.tensors(with_gradients));
  }

  // Handles a rejected call, which must not have any effect, because the eager loop skipped this
  // call.
  void refuse(const std::string& error) {
    outcome_.refusal = error.substr(error.rfind("got ") + 4);
    compare_tensors();
  }

  void note_replay(const Call& made, bool is_replay, double rate) {
    const bool has_thrown = made.error != "nothing was thrown";
    outcome_.error = has_thrown ? made.error : "";
    if (!is_replay || has_thrown) {
      rate_of_host_ = rate;
      return;
    }
    ++outcome_.replays;
    if (step_.mode() == StepMode::compiled) outcome_.kinds.insert("compiled");
    if (rate != rate_of_host_) outcome_.kinds.insert("changed rate");
    outcome_.replayed.insert(outcome_.kinds.begin(), outcome_.kinds.end());
  }

  // The first batch determines the shape. Simulated GPUs reject a replay that accumulates into a
  // gradient released by an eager step.
  Tensors draw_batch(bool may_have_other_shape) {
    const auto& net = *eager_.net;
    may_have_other_shape &= !eager_.device.is_cuda() || eager_.parts_of_batch() == 1;
    const bool has_other_shape = draw_.one_in(15) && may_have_other_shape;
    const bool overflows = eager_.scaler && draw_.one_in(8);
    if (has_other_shape) outcome_.kinds.insert("shape");
    Tensors batch;
    for (int64_t i = 0; i < eager_.parts_of_batch(); ++i) {
      for (const auto& x : net.batch(net.rows + (has_other_shape ? 1 : 0))) batch.push_back(x);
    }
    if (overflows && batch[0].is_floating_point()) {
      outcome_.kinds.insert("overflow");
      batch[0].view({-1})[0] = std::numeric_limits<float>::infinity();
    }
    for (auto& x : batch) x = x.to(eager_.device);
    if (!draw_.one_in(3)) return batch;
    outcome_.kinds.insert("slice");
    for (auto& x : batch) x = torch::cat({x.slice(0, 0, 1), x}).slice(0, 1);
    return batch;
  }

  uint64_t seed_;
  bool with_events_;
  Draw draw_;
  Training eager_, captured_;
  CapturedStep step_;
  Agreement agree_;
  double rate_of_host_ = 0;
  Outcome outcome_ = {};
};

// Counts the replayed steps, the steps that only ran eagerly, and the rejected steps.
class Table {
 public:
  enum Fate { replayed, run_eagerly, refused };

  void add(const Outcome& outcome) {
    const bool is_refused = !outcome.refusal.empty();
    count("all", is_refused ? refused : outcome.replays > 0 ? replayed : run_eagerly);
    for (const auto& kind : outcome.kinds) {
      const bool is_replayed = outcome.replayed.contains(kind);
      count(kind, is_refused ? refused : is_replayed ? replayed : run_eagerly);
    }
    if (is_refused) count("refused: " + outcome.refusal, refused);
    if (!is_refused && outcome.replays == 0) count("only run: " + outcome.error, run_eagerly);
  }

  int64_t operator()(const std::string& kind, Fate fate) const {
    const auto found = rows_.find(kind);
    return found == rows_.end() ? 0 : found->second[fate];
  }

  std::string text() const {
    std::ostringstream lines;
    lines << "replayed, only run, refused:\n";
    for (const auto& [kind, row] : rows_) {
      lines << kind << ": " << row[replayed] << " " << row[run_eagerly] << " " << row[refused]
            << "\n";
    }
    return lines.str();
  }

 private:
  void count(const std::string& kind, Fate fate) { ++rows_[kind][fate]; }

  std::map<std::string, std::array<int64_t, 3>> rows_ = {};
};

// Returns whether a step's outcome is allowed. A step may be rejected only if its scaler is used
// with non-fused kernels, because the host must then read a value to decide whether to skip the
// step.
bool is_allowed(const Outcome& outcome) {
  return outcome.refusal.empty() || (outcome.refusal.starts_with("one with a host read") &&
                                     outcome.kinds.contains("scaler on the host"));
}

Table compare_steps(uint32_t count, torch::Device device, const Compiling& compiling = {}) {
  Table table;
  int apart = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t seed = compiling.first_seed + i;
    INFO("seed " << seed);
    const auto outcome = Comparison(seed, device, compiling).run();
    if (outcome.is_16_bit && !outcome.difference.empty() && apart < compiling.most_apart) {
      ++apart;
      WARN("seed " << seed << ": " << outcome.difference);
    } else {
      CHECK(outcome.difference == "");
    }
    INFO("refused: " << outcome.refusal);
    CHECK(is_allowed(outcome));
    table.add(outcome);
  }
  return table;
}

}  // namespace

TEST_CASE("on the CPU, random captured steps match the eager loop bit for bit") {
  const auto table = compare_steps(60, torch::kCPU);
  CHECK(table("all", Table::replayed) >= 50);
}

namespace {

std::shared_ptr<StepCompiler> interpreter() {
  return std::make_shared<sconce::test::InterpretedSteps>(
      sconce::StepCompilerOptions{.keep = sconce::KeptStep::compiled});
}

// Waits for each package to be compiled, and keeps the compiled package.
std::shared_ptr<StepCompiler> compiler(const sconce::test::TempDir& folder) {
  return sconce::program::inductor(
      {.keep = sconce::KeptStep::compiled, .wait = true, .cache_dir = folder.path() / "steps"});
}

}  // namespace

TEST_CASE(
    "random captured steps that run as recorded programs produce the same losses as the eager "
    "loop") {
  const auto table = compare_steps(40, torch::kCPU, {.compiler = interpreter()});
  CHECK(table("compiled", Table::replayed) >= 30);
}

TEST_CASE("three random captured steps compile and produce the same losses as the eager loop",
          "[python]") {
  const sconce::test::TempDir folder;
  // Each of the three steps has only one part, so three packages are compiled.
  const auto table = compare_steps(
      3, torch::kCPU, {.compiler = compiler(folder), .with_events = false, .first_seed = 12});
  CHECK(table("compiled", Table::replayed) == 3);
}

TEST_CASE("60 random captured steps compile and produce the same losses as the eager loop",
          "[.][slow]") {
  const sconce::test::TempDir folder;
  const auto table =
      compare_steps(60, torch::kCPU, {.compiler = compiler(folder), .most_apart = 1});
  WARN(table.text());
  CHECK(table("compiled", Table::replayed) >= 45);
  // Counts the steps whose package is rejected. Steps that cannot be replayed because of an event
  // are excluded.
  CHECK(table("all", Table::replayed) - table("compiled", Table::replayed) <= 3);
}

TEST_CASE(
    "2000 random captured steps that run as recorded programs produce the same losses as the eager "
    "loop",
    "[.][slow]") {
  const auto table = compare_steps(2000, torch::kCPU, {.compiler = interpreter()});
  WARN(table.text());
  CHECK(table("compiled", Table::replayed) >= 1800);
}

TEST_CASE("on the CPU, 2000 random captured steps match the eager loop bit for bit", "[.][slow]") {
  const auto table = compare_steps(2000, torch::kCPU);
  WARN(table.text());
  CHECK(table("finite", Table::replayed) + table("finite", Table::run_eagerly) >= 1800);
  CHECK(table("all", Table::refused) <= 40);
  CHECK(table("all", Table::run_eagerly) <= 200);
  for (const char* kind : {"SGD",
                           "Adam",
                           "AdamW",
                           "Adagrad",
                           "RMSprop",
                           "NAdam",
                           "dropout",
                           "batch norm",
                           "embedding",
                           "attention",
                           "scaler",
                           "overflow",
                           "clipping norm",
                           "clipping value",
                           "accumulation",
                           "accumulation over calls",
                           "changed rate",
                           "parameter frozen",
                           "parameters thawed",
                           "mode changed",
                           "group added",
                           "parameter removed",
                           "schedule inside",
                           "metric",
                           "slice"}) {
    INFO(kind);
    CHECK(table(kind, Table::replayed) >= 50);
  }
}

TEST_CASE("on a GPU, random captured steps match the eager loop bit for bit", "[gpu]") {
  sconce::test::require_gpu();
  const auto table = compare_steps(20, sconce::gpu());
  CHECK(table("all", Table::replayed) == 20);
}

TEST_CASE("on a GPU, 300 random captured steps match the eager loop bit for bit",
          "[.][gpu][slow]") {
  sconce::test::require_gpu();
  const auto table = compare_steps(300, sconce::gpu());
  WARN(table.text());
  CHECK(table("all", Table::refused) == 0);
  for (const char* kind : {"parameter frozen", "parameters thawed", "mode changed",
                           "parameter moved", "metric", "slice"}) {
    INFO(kind);
    CHECK(table(kind, Table::replayed) >= 30);
  }
}

}  // namespace captured_step_random
