#include "report/layer_outputs.hpp"

#include <ATen/record_function.h>
#include <c10/util/ScopeExit.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <variant>

#include "capture/operator_observer.hpp"
#include "report/container_outputs.hpp"
#include "sconce/nn/layer_norm.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/nn/lazy_conv_transpose.hpp"
#include "sconce/nn/multihead_attention.hpp"

namespace sconce::detail {

namespace {

using at::Tensor;

// Describes how a layer class computes its output.
struct Rule {
  std::vector<std::string_view> operators;  // alternatives; one of them computes the output
  size_t outputs = 1;                       // number of operator results that the layer returns
};
using Rules = std::unordered_map<std::type_index, Rule>;

template <class... Layers>
void add(Rules& rules, const Rule& rule) {
  (rules.emplace(typeid(Layers), rule), ...);
}

// Matches only the exact class, because a derived class may compute something different.
Rules make_rules() {
  Rules rules;
  add<torch::nn::LinearImpl, nn::LazyLinearImpl>(rules,
                                                 {{"aten::linear", "aten::addmm", "aten::matmul"}});
  add<torch::nn::BilinearImpl>(rules, {{"aten::bilinear"}});
  add<torch::nn::EmbeddingImpl>(rules, {{"aten::embedding"}});
  add<torch::nn::EmbeddingBagImpl>(rules, {{"aten::embedding_bag"}});
  add<torch::nn::Conv1dImpl, nn::LazyConv1dImpl>(rules, {{"aten::conv1d"}});
  add<torch::nn::Conv2dImpl, nn::LazyConv2dImpl>(rules, {{"aten::conv2d"}});
  add<torch::nn::Conv3dImpl, nn::LazyConv3dImpl>(rules, {{"aten::conv3d"}});
  add<torch::nn::ConvTranspose1dImpl, nn::LazyConvTranspose1dImpl>(rules,
                                                                   {{"aten::conv_transpose1d"}});
  add<torch::nn::ConvTranspose2dImpl, nn::LazyConvTranspose2dImpl>(rules,
                                                                   {{"aten::conv_transpose2d"}});
  add<torch::nn::ConvTranspose3dImpl, nn::LazyConvTranspose3dImpl>(rules,
                                                                   {{"aten::conv_transpose3d"}});
  add<torch::nn::BatchNorm1dImpl, torch::nn::BatchNorm2dImpl, torch::nn::BatchNorm3dImpl,
      nn::LazyBatchNorm1dImpl, nn::LazyBatchNorm2dImpl, nn::LazyBatchNorm3dImpl>(
      rules, {{"aten::batch_norm"}});
  add<torch::nn::InstanceNorm1dImpl, torch::nn::InstanceNorm2dImpl, torch::nn::InstanceNorm3dImpl>(
      rules, {{"aten::instance_norm"}});
  add<torch::nn::LayerNormImpl, nn::LayerNormImpl>(rules, {{"aten::layer_norm"}});
  add<torch::nn::GroupNormImpl>(rules, {{"aten::group_norm"}});
  add<torch::nn::PReLUImpl>(rules, {{"aten::prelu"}});
  add<torch::nn::RNNImpl>(rules, {{"aten::rnn_tanh", "aten::rnn_relu"}, 2});
  add<torch::nn::GRUImpl>(rules, {{"aten::gru"}, 2});
  add<torch::nn::LSTMImpl>(rules, {{"aten::lstm"}, 3});
  add<torch::nn::RNNCellImpl>(rules, {{"aten::rnn_tanh_cell", "aten::rnn_relu_cell"}});
  add<torch::nn::GRUCellImpl>(rules, {{"aten::gru_cell"}});
  add<torch::nn::LSTMCellImpl>(rules, {{"aten::lstm_cell"}, 2});
  add<nn::MultiheadAttentionImpl>(rules, {{"aten::linear"}});
  return rules;
}

const Rules& rules() {
  static const Rules all = make_rules();
  return all;
}

struct Layer {
  const torch::nn::Module* module;
  const Rule* rule;
};

// An operator call in progress.
struct Running final : at::ObserverContext {
  std::optional<Layer> layer = {};  // the layer for which it computes the output
  LayerOutput output = {};
  bool is_unsqueeze = false;
};

template <class Values>
std::vector<Tensor> tensors_in(const Values& values) {
  std::vector<Tensor> all;
  for (const c10::IValue& value : values) {
    if (value.isTensor()) all.push_back(value.toTensor());
    if (!value.isTensorList()) continue;
    for (auto& tensor : value.toTensorVector()) all.push_back(std::move(tensor));
  }
  std::erase_if(all, [](const Tensor& tensor) { return !tensor.defined(); });
  return all;
}

// Returns the tensor that identifies a layer. The tensor is looked up again for each operator,
// because a lazy layer creates its tensors during its first forward pass.
Tensor key_of(const torch::nn::Module& layer) {
  for (const auto& tensors : {layer.parameters(/*recurse=*/false), layer.buffers(false)}) {
    if (!tensors.empty()) return tensors.front();
  }
  return {};
}

bool have_same_memory(const Tensor& a, const Tensor& b) {
  return a.has_storage() && b.has_storage() && a.storage().is_alias_of(b.storage()) &&
         a.storage_offset() == b.storage_offset();
}

bool is_transpose(const Tensor& a, const Tensor& b) {
  return a.dim() == 2 && b.dim() == 2 && a.size(0) == b.size(1) && a.size(1) == b.size(0) &&
         a.stride(0) == b.stride(1) && a.stride(1) == b.stride(0);
}

// Returns whether the layer pads the input with a mode other than zeros before its operator runs.
bool pads_before(const torch::nn::Module& layer) {
  const auto pads = [](const auto* conv) {
    return conv != nullptr &&
           !std::holds_alternative<torch::enumtype::kZeros>(conv->options.padding_mode());
  };
  return pads(dynamic_cast<const torch::nn::Conv1dImpl*>(&layer)) ||
         pads(dynamic_cast<const torch::nn::Conv2dImpl*>(&layer)) ||
         pads(dynamic_cast<const torch::nn::Conv3dImpl*>(&layer));
}

// Returns the shape of the layer's input, unless the layer's operator received a different tensor.
std::optional<std::vector<int64_t>> input_of(const torch::nn::Module& layer, std::string_view name,
                                             const std::vector<Tensor>& arguments) {
  if (name == "aten::embedding_bag" || pads_before(layer)) return {};
  const bool is_second = name == "aten::addmm" || name == "aten::embedding";
  return arguments[is_second ? 1 : 0].sizes().vec();
}

// Observes the operators that a forward pass calls directly, excluding nested operator calls.
class Observation {
 public:
  explicit Observation(const torch::nn::Module& model) {
    add(model);
    for (const auto& module : model.modules(/*include_self=*/false)) add(*module);
  }

  void begin(Running& running, const at::RecordFunction& function) {
    if (depth_++ > 0) return;
    const auto [name, overload] = *function.operator_name();
    running.is_unsqueeze = name == "aten::unsqueeze";
    if (overload == "data") return;  // for a packed sequence, which the layer also returns
    std::optional<std::vector<Tensor>> arguments;
    for (const auto& layer : layers_) {
      const auto& names = layer.rule->operators;
      if (std::find(names.begin(), names.end(), name) == names.end()) continue;
      if (!arguments) arguments = tensors_in(function.inputs());
      if (!computes_output(layer, name, *arguments)) continue;
      running.layer = layer;
      running.output.input = input_of(*layer.module, name, *arguments);
      return;
    }
  }

  void end(Running& running, const at::RecordFunction& function) {
    --depth_;
    if (!running.layer && !running.is_unsqueeze) return;
    const auto results = tensors_in(function.outputs());
    if (results.empty()) return;  // the operator threw
    if (running.is_unsqueeze) {
      unsqueezed_.emplace_back(results[0].getIntrusivePtr());
      return;
    }
    auto& output = outputs_[running.layer->module];
    const int64_t earlier = output.bytes;
    output = std::move(running.output);
    output.bytes = earlier;
    output.dtype = results[0].scalar_type();
    for (size_t i = 0; i < std::min(running.layer->rule->outputs, results.size()); ++i) {
      output.shapes.push_back(results[i].sizes().vec());
      output.bytes += static_cast<int64_t>(results[i].nbytes());
    }
    use_options(running.layer->module, output);
  }

  LayerOutputs take_outputs() { return std::move(outputs_); }

 private:
  void add(const torch::nn::Module& module) {
    const auto rule = rules().find(typeid(module));
    if (rule != rules().end()) layers_.push_back({&module, &rule->second});
  }

  bool computes_output(const Layer& layer, std::string_view name,
                       const std::vector<Tensor>& arguments) const {
    const auto key = key_of(*layer.module);
    if (!key.defined()) return false;
    const bool transposes = name == "aten::addmm" || name == "aten::matmul";
    const auto found = std::any_of(arguments.begin(), arguments.end(), [&](const Tensor& argument) {
      return have_same_memory(argument, key) && (!transposes || is_transpose(argument, key));
    });
    return found && !(may_unsqueeze(layer) && is_unsqueezed(arguments.front()));
  }

  // These layers add a batch dimension to unbatched inputs and remove it later. The caller may also
  // have added a batch dimension.
  static bool may_unsqueeze(const Layer& layer) {
    return typeid(*layer.module) == typeid(nn::MultiheadAttentionImpl) ||
           layer.rule->operators.front() == "aten::instance_norm";
  }

  bool is_unsqueezed(const Tensor& tensor) const {
    return std::any_of(unsqueezed_.begin(), unsqueezed_.end(), [&](const auto& earlier) {
      return earlier._unsafe_get_target() == tensor.unsafeGetTensorImpl();
    });
  }

  // In an attention layer, the observed operator projects the queries (L, N, E), so the layer's
  // output shape is derived from the shape of the queries.
  static void use_options(const torch::nn::Module* layer, LayerOutput& output) {
    const auto* attention = dynamic_cast<const nn::MultiheadAttentionImpl*>(layer);
    if (attention == nullptr) return;
    auto& shape = output.shapes.front();
    shape.back() = attention->options.embed_dim();
    if (attention->options.batch_first()) std::swap(shape[0], shape[1]);
  }

  std::vector<Layer> layers_ = {};
  LayerOutputs outputs_ = {};
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> unsqueezed_ = {};
  int depth_ = 0;
};
thread_local Observation* observation = nullptr;

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction& function) {
  if (observation == nullptr || !function.operator_name()) return nullptr;
  auto running = std::make_unique<Running>();
  observation->begin(*running, function);
  return running;
}

void end_operator(const at::RecordFunction& function, at::ObserverContext* context) {
  if (observation == nullptr || context == nullptr) return;
  observation->end(static_cast<Running&>(*context), function);
}

}  // namespace

LayerOutputs observe_layers(const torch::nn::Module& model, const std::function<void()>& forward) {
  Observation current_observation(model);
  {
    const auto restore = c10::make_scope_exit(
        [earlier = std::exchange(observation, &current_observation)] { observation = earlier; });
    const at::RecordFunctionGuard enabled(true);
    const OperatorObserver observer(begin_operator, end_operator);
    forward();
  }
  auto outputs = current_observation.take_outputs();
  add_container_outputs(model, outputs);
  return outputs;
}

}  // namespace sconce::detail
