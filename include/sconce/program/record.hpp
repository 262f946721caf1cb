#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <torch/nn/module.h>
#include <torch/ordered_dict.h>

#include <concepts>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "sconce/fwd.hpp"
#include "sconce/nn/model.hpp"
#include "sconce/nn/tensor_tree.hpp"
#include "sconce/program/program.hpp"

namespace sconce::program {

/// A dimension of an input whose size may differ between calls. Dimensions with the same `name`
/// always have the same size. Python: an entry of `dynamic_shapes` in `torch.export.export`.
struct DynamicDim {
  std::string input = {};      ///< name of the input
  int64_t dim = 0;             ///< index of the dimension, from 0
  std::string name = "batch";  ///< name of the size
};

/// Options for `record`.
struct RecordOptions {
  /// Dimensions whose sizes may differ from the example. There can be at most three sizes.
  std::vector<DynamicDim> dynamic_shapes = {};

  /// Names of the outputs. The default is "output", or "output_0", "output_1", and so on.
  std::vector<std::string> output_names = {};

  /// Whether to store the example and its outputs in the file, to verify anything that is made from
  /// it.
  bool save_example = false;

  /// For a function, the module whose parameters and buffers keep their names in the file.
  std::shared_ptr<torch::nn::Module> module = {};

  /// Additional strings to store in the file, such as the class names.
  std::map<std::string, std::string> metadata = {};
};

/// A function of tensors.
using Function = std::function<Tensors(const Tensors& inputs)>;

namespace detail {

/// Records `function`, whose weights belong to `module`. A null module has no weights.
void record(const std::filesystem::path& path, const Function& function,
            const torch::nn::Module* module, const StateDict& example,
            const RecordOptions& options);

// Excludes models before checking their operator(), which would fail to compile for a holder.
template <class F>
concept IsFunction = !nn::Model<F> && std::convertible_to<const F&, Function>;

template <class M, class... Inputs>
Tensors call_forward(M& module, const Inputs&... inputs) {
  auto result = module.forward(inputs...);
  using Result = decltype(result);
  static_assert(nn::TensorTree<Result>::any,
                "sconce::program::record: expected a forward that returns tensors");
  Tensors tensors;
  nn::TensorTree<Result>::for_each(result, [&](const at::Tensor& t) { tensors.push_back(t); });
  return tensors;
}

template <class M, class... Inputs>
concept HasForward = requires(M& module, const Inputs&... inputs) { module.forward(inputs...); };

template <class M>
Tensors call_forward_with(M& module, const Tensors& in) {
  using T = at::Tensor;
  if constexpr (HasForward<M, T>) {
    if (in.size() == 1) return call_forward(module, in[0]);
  }
  if constexpr (HasForward<M, T, T>) {
    if (in.size() == 2) return call_forward(module, in[0], in[1]);
  }
  if constexpr (HasForward<M, T, T, T>) {
    if (in.size() == 3) return call_forward(module, in[0], in[1], in[2]);
  }
  if constexpr (HasForward<M, T, T, T, T>) {
    if (in.size() == 4) return call_forward(module, in[0], in[1], in[2], in[3]);
  }
  TORCH_CHECK(false, "sconce::program::record: expected a model whose forward takes ", in.size(),
              " tensors, the number of tensors in the example; alternatively, record a function "
              "that calls it");
}

}  // namespace detail

/// Runs a function on an example and saves a program that computes the same result.
///
/// The file contains LibTorch's operators in the order in which the function calls them, the
/// weights by name, the inputs, and the outputs. Python's module `sconce_cpp` converts it to a
/// `torch.export.ExportedProgram`, to ONNX, or to a package. `Program` runs it in C++.
///
/// With dynamic sizes, the function also runs on inputs of other sizes, made from the example's
/// rows, and each integer that differs becomes an expression of the sizes. Before the file is
/// written, the program runs once, and its outputs are compared with the function's outputs.
///
/// The function runs in the network's current mode, without gradients, so call `eval()` first.
/// Python: `torch.export.export(module, args, dynamic_shapes=...)` and `torch.export.save`.
/// @throw c10::Error, with the operator and a suggested alternative in the message, if the
/// function:
/// - reads a value on the host, or creates a tensor whose shape depends on values;
/// - draws random numbers, for example through Dropout in training mode;
/// - modifies an input, a weight, or a buffer, as BatchNorm does in training mode;
/// - calls an operator that is not part of LibTorch, a collective, or operators in other threads;
/// - uses sparse or quantized tensors, or GPUs other than the example's;
/// - calls different operators for different sizes, or passes a number that is not a sum of
///   products of the sizes and integers.
/// @throw c10::Error if the example is empty, the name of an input or output is not an identifier
/// or occurs twice, a dimension does not exist, or the file cannot be written.
template <detail::IsFunction F>
void record(const std::filesystem::path& path, const F& function, const StateDict& example,
            const RecordOptions& options = {}) {
  const auto module = options.module;
  detail::record(path, Function(function), module.get(), example, options);
}

/// Records the `forward` of a model with one to four inputs. It must return a tensor, or a vector,
/// tuple, pair, or map of tensors. The weights keep their names from `named_parameters` and
/// `named_buffers`. In all other respects, this works as above.
///
///     net->eval();
///     sconce::program::record("net.safetensors", net, {{"x", x}}, {.dynamic_shapes = {{"x", 0}}});
template <class Model>
void record(const std::filesystem::path& path, Model& model, const StateDict& example,
            const RecordOptions& options = {})
  requires nn::Model<Model>
{
  if constexpr (std::is_base_of_v<torch::nn::Module, Model>) {
    detail::record(
        path, [&](const Tensors& inputs) { return detail::call_forward_with(model, inputs); },
        &model, example, options);
  } else {
    record(path, *model, example, options);
  }
}

}  // namespace sconce::program
