#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "program/graph.hpp"
#include "sconce/program/program.hpp"

namespace sconce::program::detail {

/// A program that has been prepared to run on a device.
class PreparedProgram {
 public:
  /// Error messages start with `error_prefix`.
  /// @throw c10::Error with the location if a call's arguments do not fit its operator, or if a
  /// tensor is used before a call returns it.
  PreparedProgram(Graph graph, c10::Device device, const std::string& error_prefix);
  PreparedProgram(const PreparedProgram&) = delete;
  PreparedProgram& operator=(const PreparedProgram&) = delete;

  Tensors run(const Tensors& inputs) const;

  const Graph& graph() const { return graph_; }
  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  c10::Device device() const { return device_; }

 private:
  // A tensor, a constant argument, or an argument that depends on tensors or sizes.
  using PreparedArgument = std::variant<size_t, c10::IValue, const Argument*>;

  struct PreparedCall {
    const Call* call;
    std::vector<PreparedArgument> arguments = {};
    std::vector<size_t> last_used = {};
  };

  void check_values(const std::string& error_prefix) const;
  PreparedCall prepare(size_t index, const Environment& in, const std::string& error_prefix) const;
  void find_last_uses();
  std::vector<int64_t> sizes_of(const Tensors& inputs) const;
  void run(const PreparedCall& prepared, std::vector<at::Tensor>& values, const Environment& in,
           torch::jit::Stack& stack) const;

  Graph graph_;
  c10::Device device_;
  std::vector<TensorSpec> inputs_ = {};
  std::vector<TensorSpec> outputs_ = {};
  std::vector<PreparedCall> calls_ = {};
};

}  // namespace sconce::program::detail
