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

namespace sconce {

/// A module of a model.
struct SummaryRow {
  std::string name = {};        ///< in the module around it, such as "0"; empty: the model itself
  std::string class_name = {};  ///< such as "Linear"
  int depth = 0;                ///< of the model itself 0
  std::vector<std::vector<int64_t>> output_shapes = {};  ///< of each output; empty: not known
  int64_t parameters = 0;  ///< numbers in the tensors of the module itself, without its children's
  bool is_trainable = false;  ///< whether one of them gets a gradient
  bool has_children = false;
  bool is_repeated = false;  ///< is above already: the totals count its parameters once
};

/// The modules of a model and their totals. Buffers are not counted as parameters.
struct Summary {
  std::vector<SummaryRow> rows = {};  ///< the model, then what is in it, parents before children
  int64_t parameters = 0;             ///< numbers, each tensor's once
  int64_t trainable_parameters = 0;   ///< of these, the ones that get a gradient
  int64_t parameter_bytes = 0;
  int64_t input_bytes = 0;
  int64_t forward_backward_bytes = 0;  ///< the outputs of what has parameters, and their gradients
};

/// Prints the summary as a table, and the totals below it.
std::ostream& operator<<(std::ostream& out, const Summary& summary);

/// What `summary` makes of any module; for the functions below alone.
struct SummaryCalls {
  using Outputs = std::vector<torch::Tensor>;

  std::vector<torch::Tensor> inputs = {};
  std::function<Outputs()> forward = {};  ///< of the model
  /// Of the first module of a Sequential.
  std::function<torch::nn::AnyValue(torch::nn::AnyModule& first)> forward_first = {};

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

/// Summarizes a model by the calls of its `forward`.
Summary summarize(torch::nn::Module& model, const SummaryCalls& calls);

/// Runs one `forward` of the model, a module or a holder of one, without gradients and in
/// evaluation mode, and returns what its modules are. Afterwards each module's mode and the random
/// generators are as before; lazy layers have their tensors.
///
/// LibTorch's modules have no hooks, so the outputs are known of the model and, where it is a
/// `torch::nn::Sequential`, of each module in it; not of what is in those.
/// Python: `torchinfo.summary(model, input_data=inputs)`.
/// @throw c10::Error if an input is on a device on which the model has no tensor; what `forward`
/// throws.
template <class Model, class... Inputs>
Summary summary(Model& model, const Inputs&... inputs) {
  if constexpr (requires { *model; }) {
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
