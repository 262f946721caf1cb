#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <map>
#include <string>
#include <vector>

#include "program/argument.hpp"
#include "program/size.hpp"

namespace sconce::program::detail {

/// An operator call. The arguments are in the order of the operator's schema.
struct Call {
  c10::OperatorHandle op;
  std::vector<Argument> arguments = {};
  std::vector<Argument> results = {};
};

/// An input or an output.
struct Port {
  std::string name;
  size_t value;
  c10::ScalarType dtype;
  std::vector<Size> shape = {};
};

enum class WeightKind { parameter, buffer, constant };

/// A tensor stored in the program. If two weights of a network share a parameter, both use the same
/// value.
struct Weight {
  std::string name;
  WeightKind kind;
  size_t value;
  at::Tensor tensor;
  c10::DeviceType device;  // the device on which the program uses it
};

/// A size that may differ between runs.
struct DynamicSize {
  std::string name;
  int64_t min;  // 1, or 2 if the function behaves differently at 1
};

/// CRC-32 checksums of tensors as eight hexadecimal digits, keyed by the tensors' names in the
/// file.
using Checksums = std::map<std::string, std::string>;

/// A recorded program.
struct Graph {
  c10::DeviceType device = c10::kCPU;
  std::vector<DynamicSize> sizes = {};
  std::vector<Port> inputs = {};
  std::vector<Port> outputs = {};
  std::vector<Weight> weights = {};
  std::vector<Call> calls = {};
  size_t values = 0;  // the number of tensors
  std::map<std::string, std::string> metadata = {};
  std::vector<at::Tensor> example_inputs = {};  // empty, or one tensor per input
  std::vector<at::Tensor> example_outputs = {};
};

/// Returns the location of a call for error messages, such as "calls[3] aten::linear".
std::string place_of(size_t index, const c10::OperatorHandle& op);

}  // namespace sconce::program::detail
