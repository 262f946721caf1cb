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

/// An input dimension whose size may differ between calls. Dimensions with the same `name` always
/// have the same size. Python: an entry in `dynamic_shapes` in `torch.export.export`.
struct DynamicDim {
  std::string input = {};      ///< name of the input
  int64_t dim = 0;             ///< index of the dimension, from 0
  std::string name = "batch";  ///< name of the size
};

/// Options for `record`.
struct RecordOptions {
  /// Dimensions whose sizes may differ from the example's sizes. At most three distinct size names
  /// are allowed.
  std::vector<DynamicDim> dynamic_shapes = {};

  /// Names of the outputs. Defaults to "output" for a single output, and to "output_0", "output_1",
  /// and so on for several outputs.
  std::vector<std::string> output_names = {};

  /// Whether to store the example and its outputs in the file, so that converted programs can be
  /// verified.
  bool save_example = false;

  /// The module that the function uses, if you record a function rather than a model. The module's
  /// parameters and buffers keep their names in the file.
  std::shared_ptr<torch::nn::Module> module = {};

  /// Additional strings to store in the file, such as class names.
  std::map<std::string, std::string> metadata = {};
};

/// A function of tensors.
using Function = std::function<Tensors(const Tensors& inputs)>;

namespace detail {

/// Records `function` with the weights of `module`. If `module` is null, there are no weights.
void record(const std::filesystem::path& path, const Function& function,
            const torch::nn::Module* module, const StateDict& example,
            const RecordOptions& options);

// Excludes models before their operator() is checked, because the check would fail to compile for a
// module holder.
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
/// The file contains the LibTorch operators in call order, the named weights, and descriptions of
/// the inputs and outputs. The Python module `sconce_cpp` converts the file to a
/// `torch.export.ExportedProgram`, to ONNX, or to a package. In C++, run the recorded program with
/// `Program`.
///
/// With dynamic sizes, the function is also run on inputs of different sizes, which are created
/// from the example's rows. Each integer that differs between these runs is replaced with an
/// expression in terms of the dynamic sizes. Before the file is written, the program is run once,
/// and its outputs are compared with the function's outputs.
///
/// The function runs without gradients and in the network's current mode, so call `eval()` first.
/// Python: `torch.export.export(module, args, dynamic_shapes=...)` and `torch.export.save`.
/// @throw c10::Error, with the operator and a suggested alternative in the message, if the
/// function:
/// - reads a value on the host, or creates a tensor with a data-dependent shape;
/// - draws random numbers, for example through Dropout in training mode;
/// - modifies an input, a weight, or a buffer, as BatchNorm does in training mode;
/// - calls an operator that is not part of LibTorch, calls a collective, or runs operators in other
///   threads;
/// - uses sparse or quantized tensors, or a GPU other than the example's GPU;
/// - calls different operators for different sizes, or passes a number that cannot be written as a
///   multilinear polynomial of the sizes with integer coefficients.
/// @throw c10::Error if the example is empty, the name of an input or output is not an identifier
/// or is duplicated, a dimension does not exist, or the file cannot be written.
template <detail::IsFunction F>
void record(const std::filesystem::path& path, const F& function, const StateDict& example,
            const RecordOptions& options = {}) {
  const auto module = options.module;
  detail::record(path, Function(function), module.get(), example, options);
}

/// Records the `forward` function of a model with one to four inputs. `forward` must return a
/// tensor, or a vector, tuple, pair, or map of tensors. The weights keep their names from
/// `named_parameters` and `named_buffers`. In all other respects, this overload works like the
/// previous overload.
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
