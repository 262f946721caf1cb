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

/// A row of a summary: one module of the model.
struct SummaryRow {
  std::string name = {};        ///< Its name in its parent, such as "0"; empty for the model
  std::string class_name = {};  ///< Such as "Linear"
  int depth = 0;                ///< 0 for the model, 1 for its children, and so on
  std::vector<std::vector<int64_t>> output_shapes = {};  ///< Of the last run; empty if not known
  int64_t parameters = 0;     ///< Number of parameters, without those of its children
  bool is_trainable = false;  ///< Whether one of them requires grad
  bool has_children = false;  ///< Whether it contains modules
  bool is_repeated = false;   ///< Whether a row above is the same module; totals count it once
};

/// The modules of a model and their totals. Buffers are not counted as parameters.
struct Summary {
  std::vector<SummaryRow> rows = {};   ///< The model first; parents come before their children
  int64_t parameters = 0;              ///< Number of parameters; shared tensors count once
  int64_t trainable_parameters = 0;    ///< Number of those that require grad
  int64_t parameter_bytes = 0;         ///< Size of the parameters
  int64_t input_bytes = 0;             ///< Size of the inputs
  int64_t forward_backward_bytes = 0;  ///< Known outputs of layers with parameters, and gradients
};

/// Prints the summary as a table, and the totals below it.
std::ostream& operator<<(std::ostream& out, const Summary& summary);

/// The calls by which `summary` works for any type of module. Not for direct use.
struct SummaryCalls {
  using Outputs = std::vector<torch::Tensor>;  ///< The tensors that a module returns

  std::vector<torch::Tensor> inputs = {};  ///< Inputs of the model
  std::function<Outputs()> forward = {};   ///< Runs the model
  /// Runs the first module of a Sequential.
  std::function<torch::nn::AnyValue(torch::nn::AnyModule& first)> forward_first = {};

  /// Returns the tensors in an output: a tensor, a vector of tensors or a tuple of these. Any other
  /// output has none.
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

/// Returns the summary of a model by these calls. Not for direct use.
Summary summarize(torch::nn::Module& model, const SummaryCalls& calls);

/// Runs `forward` of the model (a module or a module holder) once, in evaluation mode and without
/// gradients, and returns a summary of its modules. Each module's mode and the random generators
/// are restored. Lazy layers are initialized; if the model has one, the generators are not
/// restored, since its weights have used their numbers.
///
/// LibTorch's modules have no hooks. The output shapes are those of the model, of the modules in a
/// model that is a `torch::nn::Sequential`, and otherwise of the layers of LibTorch and sconce
/// whose operators show that they ran: layers with tensors, the layers of a `Sequential`, and the
/// parts of transformers. A layer that ran several times has the shape of its last run. Other
/// modules, such as a custom module in a custom module, have no shape. Python:
/// `torchinfo.summary(model, input_data=inputs)`.
/// @throw c10::Error if an input is on a device where the model has no tensor. Exceptions of
/// `forward` are passed on.
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
