#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "capture_scope.hpp"
#include "weak_tensor.hpp"

namespace sconce::detail {

/// Gradients of parameters at one place of the step.
using Gradients = std::vector<std::pair<WeakTensor, at::Tensor>>;

/// What a thread has set that kernels read: dispatch keys, which reach the operators that a kernel
/// calls, and whether gradients are enabled.
struct ThreadState {
  static ThreadState now();
  void apply() const;

  c10::impl::LocalDispatchKeySet keys;
  bool grad_mode;
};

/// A call of an operator. Its tensors name the memory of the replays: each has the storage that
/// replaces the recorded tensor's one.
struct OperatorCall {
  c10::OperatorHandle op;
  c10::DispatchKeySet keys;  // of the kernels below autograd and autocast
  ThreadState thread;
  // The operator that returns its results, if `op` writes them into memory among its arguments.
  std::optional<c10::OperatorHandle> returning = {};
  std::vector<c10::IValue> arguments = {};
  std::vector<at::Tensor> results = {};    // that take the results' memory; undefined for a view
  std::vector<at::Tensor> last_used = {};  // whose memory is freed afterwards
};

/// A call of host code.
struct HostCall {
  std::function<void()> call;
  Gradients gradients;  // that the call reads
};

/// Compiled code that does what a part of a step does.
class CompiledCode {
 public:
  virtual ~CompiledCode() = default;

  /// Runs the code, which may write into the inputs, and returns tensors of new memory.
  virtual std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) = 0;
};

/// A call of compiled code in place of the operators of a part of a step.
struct CompiledCall {
  size_t begin;  // the first of the step's calls in its place
  size_t end;    // the call after the last one
  std::shared_ptr<CompiledCode> code = {};
  std::vector<at::Tensor> inputs = {};     // name all memory that the code reads or writes
  std::vector<at::Tensor> written = {};    // those of the inputs that it writes
  std::vector<at::Tensor> results = {};    // name the memory that takes the results
  std::vector<at::Tensor> last_used = {};  // whose memory is freed afterwards
  int bits = 64;                           // of the least precise type that it computes in
};

/// A tensor that the step has not made, as it was when the step was recorded.
struct Input {
  explicit Input(const at::Tensor& tensor);
  bool is_unchanged() const;
  /// Returns whether the other has the same sizes, strides and type.
  bool is_like(const Input& other) const;

  WeakTensor tensor;
  const c10::StorageImpl* storage;
  const void* data;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  c10::ScalarType dtype;
  bool requires_grad;
  bool is_parameter;  // a leaf that requires a gradient, or that has one and is frozen
  bool is_foreign;    // no allocator made its memory
};

/// The gradient of a parameter before and after the step.
struct LeafGradient {
  WeakTensor parameter;
  WeakTensor before;
  at::Tensor after;
  bool is_dropped;     // the step drops the gradient that was there before, whatever it was
  bool is_new_memory;  // it is dropped, and a call gives the one after the step new memory
};

/// A value that the host gave to a call: the numbers among its arguments, or memory that no call
/// has written. A replay does not compute it anew.
struct HostValue {
  bool operator==(const HostValue&) const = default;

  std::string op;
  size_t hash;
};

/// What two recordings of a step must have in common before one of them is replayed.
struct StepTrace {
  /// Returns whether the other has the same operators, with inputs of the same sizes and types.
  bool is_like(const StepTrace& other) const;

  /// Returns the operator to which the host gave another value than in the other, which is like
  /// this one, or null.
  const std::string* find_changed_value(const StepTrace& other) const;

  std::vector<Input> inputs = {};
  std::vector<HostValue> host_values = {};  // of all calls, in their order
  Conditions conditions = {};               // under which it was recorded
};

/// How a recorded step fits what the step would do now.
enum class Fit { fits, changed, gone };

/// The operators of one run of a step on the CPU, below autograd, with the memory that they write.
struct RecordedStep {
  using Calls = std::vector<std::variant<OperatorCall, HostCall, CompiledCall>>;

  /// Returns `gone` if a parameter no longer exists, and `changed` if the step would read or write
  /// other memory, or compute other gradients, or a condition no longer holds.
  Fit fit() const;

  /// Runs the step again by these calls: its own, or some of them compiled. The thread's state is
  /// restored.
  void replay(const Calls& by);
  void replay() { replay(calls); }

  /// Runs the operators from call `begin` to before call `end` again.
  void replay_part(size_t begin, size_t end) const;

  void drop_gradients() const;
  void forget_dropped_gradients() const;

  Calls calls = {};
  std::vector<at::Tensor> constants = {};  // that no call makes anew; of equal elements each
  StepTrace trace = {};
  std::vector<LeafGradient> gradients = {};
  std::vector<c10::VariableVersion> written = {};  // of tensors that the step has not made
  std::vector<c10::Storage> memory = {};           // that the calls name
  at::DataPtr pool = {};
};

/// Returns whether the call can be a part of compiled code, which runs without gradients enabled.
bool can_compile(const RecordedStep::Calls::value_type& call);

/// Runs the code below autograd and returns its results, without giving them to the step.
std::vector<at::Tensor> run_code(const CompiledCall& call);

}  // namespace sconce::detail
