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

/// A tensor that a run of the function returned.
struct TracedOutput {
  size_t value;
  c10::ScalarType dtype;
  std::vector<int64_t> shape;
};

/// The operators of one run of a function, with the tensors that it used.
struct Trace {
  std::vector<Call> calls = {};
  std::vector<Weight> constants = {};  // tensors that the host made in the function
  std::vector<TracedOutput> outputs = {};
  size_t values = 0;
};

/// Collects the operators of one run of a function.
class Tracer {
 public:
  /// A call that is running.
  struct Running {
    Call call;
    std::vector<c10::IValue> given;
  };

  /// An input of the run.
  struct Input {
    std::string name;
    at::Tensor tensor;
  };

  /// `inputs` and `weights` have numbers before the run; tied weights have the same one.
  Tracer(const std::vector<Input>& inputs, const std::vector<Weight>& weights);

  /// Numbers the arguments of an operator that begins. Call it before the operator changes them.
  /// @throw c10::Error for a call that a program cannot contain, with the reason and what to do.
  Running begin(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);

  /// Adds the call, which has returned.
  void end(Running running, c10::ArrayRef<c10::IValue> results);

  /// Returns whether each of the tensors is known already.
  bool knows(c10::ArrayRef<c10::IValue> results) const;

  /// Returns the device of the inputs.
  c10::Device device() const { return device_; }

  /// Returns the place of a call that is being recorded, for errors.
  std::string here(const c10::OperatorHandle& op) const { return place_of(calls_.size(), op); }

  /// Returns the trace of the run, which returned these tensors.
  Trace finish(const std::vector<at::Tensor>& outputs);

 private:
  enum class Owner { input, weight, constant, step };

  // Memory that tensors of the run share.
  struct Memory {
    Owner owner;
    std::string name = {};             // of an input or a weight
    std::vector<size_t> values = {};   // those that lie in it
    std::optional<size_t> allocation;  // the call that made it, if nobody has written it since
  };

  void add(const at::Tensor& tensor, size_t id, Owner owner, const std::string& name);
  size_t number_of(const at::Tensor& tensor);
  size_t add_constant(const at::Tensor& tensor);
  void keep_constant(size_t id);
  void keep_what_the_host_wrote(Memory& memory);
  void check_write(const Memory& memory, const c10::OperatorHandle& op) const;
  Memory* memory_of(const at::Tensor& tensor);

  c10::Device device_;
  std::vector<Call> calls_ = {};
  std::vector<bool> is_dropped_ = {};  // allocations of memory that the host wrote
  std::vector<Weight> constants_ = {};
  std::vector<at::Tensor> values_ = {};  // keeps the tensors, so that no address is used twice
  std::unordered_map<const c10::TensorImpl*, size_t> ids_ = {};
  std::unordered_map<const c10::StorageImpl*, Memory> memory_ = {};
};

}  // namespace sconce::program::detail
