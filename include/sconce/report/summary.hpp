#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <tuple>
#include <vector>

#include "sconce/fwd.hpp"
#include "sconce/nn/model.hpp"

namespace sconce {

/// A summary row, which describes a single module.
struct SummaryRow {
  std::string name = {};        ///< name within the parent module, such as "0"; empty for the model
  std::string class_name = {};  ///< such as "Linear"
  int depth = 0;                ///< 0 for the model, 1 for its children, and so on
  std::vector<std::vector<int64_t>> output_shapes = {};  ///< output shapes of the last call; empty
                                                         ///< if unknown
  int64_t parameters = 0;     ///< number of parameters, excluding child modules
  bool is_trainable = false;  ///< whether any of these parameters requires grad
  bool has_children = false;  ///< whether the module contains other modules
  bool is_repeated = false;   ///< whether a row above shows the same module; totals count it once
};

/// A summary of a model's modules, with totals over all modules. Buffers are not counted as
/// parameters.
struct Summary {
  std::vector<SummaryRow> rows = {};   ///< the model first, and parents before their children
  int64_t parameters = 0;              ///< number of parameters; shared tensors count once
  int64_t trainable_parameters = 0;    ///< number of parameters that require grad
  int64_t parameter_bytes = 0;         ///< size of the parameters
  int64_t input_bytes = 0;             ///< size of the inputs
  int64_t forward_backward_bytes = 0;  ///< size of gradients and of known outputs of layers with
                                       ///< parameters
};

/// Prints the summary as a table, followed by the totals.
std::ostream& operator<<(std::ostream& out, const Summary& summary);

/// Functions that let `summary` support any module type. For internal use.
struct SummaryCalls {
  using Outputs = std::vector<torch::Tensor>;  ///< the tensors that a module returns

  std::vector<torch::Tensor> inputs = {};  ///< inputs of the model
  std::function<Outputs()> forward = {};   ///< runs the model
  /// Runs a Sequential's first module.
  std::function<torch::nn::AnyValue(torch::nn::AnyModule& first)> forward_first = {};

  /// Returns the tensors in an output. The output may be a tensor, a vector of tensors, or a
  /// (possibly nested) tuple of these. Returns an empty vector for any other output.
  static Outputs outputs(const torch::Tensor& output) { return {output}; }
  static Outputs outputs(const Outputs& outputs) { return outputs; }
  template <class... Parts>
  static Outputs outputs(const std::tuple<Parts...>& parts) {
    Outputs all;
    const auto add = [&all](const Outputs& some) {
      all.insert(all.end(), some.begin(), some.end());
    };
    std::apply([&](const auto&... part) { (add(outputs(part)), ...); }, parts);
    return all;
  }
  template <class Other>
  static Outputs outputs(const Other&) {
    return {};
  }
};

/// Returns a model's summary, using the given functions. For internal use.
Summary summarize(torch::nn::Module& model, const SummaryCalls& calls);

/// Runs the `forward` function of the model (a module or a module holder) once, in evaluation mode
/// and without gradients, and returns a summary of the model's modules. Afterward, the modes of all
/// modules are restored. Lazy layers are initialized, which consumes random numbers. If the model
/// contains no lazy layers, the states of the random number generators are restored as well.
///
/// LibTorch modules do not support hooks. Therefore, output shapes are known only for the model
/// itself, for the modules of a `torch::nn::Sequential` model, and for layers whose calls can be
/// detected from the operators that the layers run. The detectable layers are LibTorch and sconce
/// layers that contain tensors, layers in a `Sequential`, and transformer components. If a layer
/// ran several times, the shape of its last output is used. The shapes of other modules, such as a
/// custom module inside a custom module, are unknown.
/// Python: `torchinfo.summary(model, input_data=inputs)`.
/// @throw c10::Error if an input is on a device on which the model has no tensors.
/// Exceptions thrown by `forward` are propagated.
template <class Model, class... Inputs>
Summary summary(Model& model, const Inputs&... inputs) {
  nn::detail::check_model<Model>();
  if constexpr (!nn::Model<Model>) {
    return {};
  } else if constexpr (requires { *model; }) {
    return summary(*model, inputs...);
  } else {
    return summarize(
        model, {.inputs = {inputs...},
                .forward = [&] { return SummaryCalls::outputs(model.forward(inputs...)); },
                .forward_first =
                    [&](torch::nn::AnyModule& first) { return first.any_forward(inputs...); }});
  }
}

}  // namespace sconce
