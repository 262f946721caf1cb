#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "program/graph.hpp"

namespace sconce::program::detail {

/// A tensor that was returned by a run of the function.
struct TracedOutput {
  size_t value;
  c10::ScalarType dtype;
  std::vector<int64_t> shape;
};

/// The operators in one run of a function, and the tensors used in the run.
struct Trace {
  std::vector<Call> calls = {};
  std::vector<Weight> constants = {};  // tensors created by the host in the function
  std::vector<TracedOutput> outputs = {};
  size_t values = 0;
};

/// Collects the operators in one run of a function.
class Tracer {
 public:
  /// A call in progress.
  struct Running {
    Call call;
    std::vector<c10::IValue> given;
  };

  /// An input of the run.
  struct Input {
    std::string name;
    at::Tensor tensor;
  };

  /// `inputs` and `weights` get their numbers before the run. Tied weights share a number.
  Tracer(const std::vector<Input>& inputs, const std::vector<Weight>& weights);

  /// Assigns numbers to the arguments of an operator at the start of the call. Must be called
  /// before the operator modifies the arguments.
  /// @throw c10::Error with the reason and a suggestion if a program cannot contain the call.
  Running begin(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);

  /// Adds a call after it has returned.
  void end(Running running, c10::ArrayRef<c10::IValue> results);

  /// Returns whether all of the tensors are already known.
  bool knows(c10::ArrayRef<c10::IValue> results) const;

  /// Returns the device of the inputs.
  c10::Device device() const { return device_; }

  /// Returns the location of the call that is being recorded, for error messages.
  std::string here(const c10::OperatorHandle& op) const { return place_of(calls_.size(), op); }

  /// Returns the trace of the run, given the tensors that the run returned.
  Trace finish(const std::vector<at::Tensor>& outputs);

 private:
  enum class Owner { input, weight, constant, step };

  // A block of memory shared by tensors in the recorded run.
  struct Memory {
    Owner owner;
    std::string name = {};             // name of an input or a weight
    std::vector<size_t> values = {};   // tensors that use this memory
    std::optional<size_t> allocation;  // the call that allocated it; reset by a write
  };

  void add(const at::Tensor& tensor, size_t id, Owner owner, const std::string& name);
  size_t number_of(const at::Tensor& tensor);
  size_t add_constant(const at::Tensor& tensor);
  void keep_constant(size_t id);
  void keep_host_writes(Memory& memory);
  void check_write(const Memory& memory, const c10::OperatorHandle& op) const;
  Memory* memory_of(const at::Tensor& tensor);

  c10::Device device_;
  std::vector<Call> calls_ = {};
  std::vector<bool> is_dropped_ = {};  // allocations of memory that the host wrote
  std::vector<Weight> constants_ = {};
  std::vector<at::Tensor> values_ = {};  // keeps tensors alive, so addresses are not reused
  std::unordered_map<const c10::TensorImpl*, size_t> ids_ = {};
  std::unordered_map<const c10::StorageImpl*, Memory> memory_ = {};
};

}  // namespace sconce::program::detail
