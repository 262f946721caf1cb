#include "report/container_outputs.hpp"

#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <c10/util/Type.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/functional.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/transformer.h>
#include <torch/nn/modules/transformercoder.h>
#include <torch/nn/modules/transformerlayer.h>

#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "sconce/nn/transformer_model.hpp"

namespace sconce::detail {

namespace {

template <class... Classes>
bool is_any(const torch::nn::Module& module) {
  return ((typeid(module) == typeid(Classes)) || ...);
}

// Returns whether the module is a LibTorch layer that contains neither tensors nor user code.
bool is_plain_layer(const torch::nn::Module& module) {
  return c10::demangle(typeid(module).name()).starts_with("torch::nn::") &&
         !is_any<torch::nn::FunctionalImpl>(module) && module.children().empty() &&
         module.parameters().empty() && module.buffers().empty();
}

// Runs a layer that has no parameters or buffers on a tensor of zeros. A meta tensor would not
// work, because relu has no meta kernel in C++.
std::optional<LayerOutput> output_for(torch::nn::AnyModule& layer, const LayerOutput& input) {
  if (input.shapes.size() != 1) return {};
  try {
    const auto output = layer.forward(at::zeros(input.shapes[0], input.dtype));
    return LayerOutput{.shapes = {output.sizes().vec()}, .dtype = output.scalar_type()};
  } catch (const c10::Error&) {
    return {};  // the input or output of the layer is not a tensor
  }
}

class Containers {
 public:
  explicit Containers(LayerOutputs& outputs) : outputs_(outputs) {}

  // Processes children before their parents.
  void add(const torch::nn::Module& module) {
    for (const auto& child : module.children()) add(*child);
    if (is_any<torch::nn::TransformerEncoderLayerImpl, nn::TransformerEncoderLayerImpl,
               torch::nn::TransformerDecoderLayerImpl, nn::TransformerDecoderLayerImpl>(module)) {
      add_layer(module);
    } else if (is_any<torch::nn::TransformerEncoderImpl, nn::TransformerEncoderImpl,
                      torch::nn::TransformerDecoderImpl, nn::TransformerDecoderImpl>(module)) {
      add_stack(module);
    } else if (is_any<torch::nn::TransformerImpl, nn::TransformerImpl>(module)) {
      copy(child(module, "decoder"), module);
    } else if (is_any<torch::nn::MultiheadAttentionImpl>(module)) {
      copy(child(module, "out_proj"), module);
    } else if (is_any<torch::nn::SequentialImpl>(module)) {
      add_sequential(module);
    }
  }

 private:
  static const torch::nn::Module* child(const torch::nn::Module& module, const std::string& name) {
    const auto children = module.named_children();
    const auto* const found = children.find(name);
    return found == nullptr ? nullptr : found->get();
  }

  void copy(const torch::nn::Module* from, const torch::nn::Module& to) {
    const auto found = outputs_.find(from);
    if (found == outputs_.end()) return;
    outputs_[&to] = {.shapes = found->second.shapes, .dtype = found->second.dtype};
  }

  // The layer, its attention modules, and its first norm all preserve the shape of the layer's
  // first input.
  void add_layer(const torch::nn::Module& layer) {
    const auto* const norm = child(layer, "norm1");
    copy(norm, layer);
    for (const auto* const name : {"self_attn", "multihead_attn"}) {
      if (const auto* const attention = child(layer, name)) copy(norm, *attention);
    }
  }

  void add_stack(const torch::nn::Module& stack) {
    if (const auto* const norm = child(stack, "norm")) return copy(norm, stack);
    const auto* const layers = child(stack, "layers");
    if (layers == nullptr || layers->children().empty()) return;
    copy(layers->children().back().get(), stack);
  }

  // Each module in a Sequential receives the output of the previous module.
  void add_sequential(const torch::nn::Module& module) {
    // LibTorch does not provide const access to the modules. This function does not modify the
    // modules.
    auto& sequential = const_cast<torch::nn::SequentialImpl&>(  // NOLINT(*-const-cast)
        static_cast<const torch::nn::SequentialImpl&>(module));
    std::vector<const torch::nn::Module*> derived;  // since the last observed operator
    const LayerOutput* last = nullptr;
    const torch::nn::Module* before = nullptr;
    for (auto& each : sequential) {
      const auto* const layer = each.ptr().get();
      if (is_plain_layer(*layer)) {
        last = last == nullptr ? nullptr : derive(each, *last);
        derived.push_back(layer);
      } else {
        const auto found = outputs_.find(layer);
        const auto* const next = found == outputs_.end() ? nullptr : &found->second;
        if (next != nullptr && next->input) compare(derived, last, before, *next->input);
        last = next;
        derived.clear();
      }
      before = layer;
    }
    if (!sequential.is_empty()) copy((sequential.end() - 1)->ptr().get(), module);
  }

  // Derives the output of a layer that has no parameters or buffers, stores the output, and returns
  // it. Returns null if the output cannot be derived.
  const LayerOutput* derive(torch::nn::AnyModule& layer, const LayerOutput& input) {
    auto output = output_for(layer, input);
    if (!output) return nullptr;
    return &outputs_.insert_or_assign(layer.ptr().get(), *std::move(output)).first->second;
  }

  // The output that precedes a layer must match the layer's input. If the derived output does not
  // match, the caller ran other modules in between.
  void compare(const std::vector<const torch::nn::Module*>& derived, const LayerOutput* last,
               const torch::nn::Module* before, const std::vector<int64_t>& input) {
    if (last == nullptr && before != nullptr) outputs_[before] = {.shapes = {input}};
    if (last == nullptr || last->shapes.front() == input) return;
    for (const auto* const module : derived) outputs_.erase(module);
  }

  LayerOutputs& outputs_;
};

}  // namespace

void add_container_outputs(const torch::nn::Module& model, LayerOutputs& outputs) {
  Containers(outputs).add(model);
}

}  // namespace sconce::detail
