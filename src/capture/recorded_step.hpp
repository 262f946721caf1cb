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

/// The parameter gradients at one point in the step.
using Gradients = std::vector<std::pair<WeakTensor, at::Tensor>>;

/// The thread-local settings that kernels read: the dispatch keys, which affect the operators that
/// a kernel calls, and whether gradients are enabled.
struct ThreadState {
  static ThreadState now();
  void apply() const;

  c10::impl::LocalDispatchKeySet keys;
  bool grad_mode;
};

/// An operator call. Its tensors refer to the memory used by replays. Each tensor uses the storage
/// that replaces the storage of the recorded tensor.
struct OperatorCall {
  c10::OperatorHandle op;
  c10::DispatchKeySet keys;  // for kernels below autograd and autocast
  ThreadState thread;
  // If `op` is an out variant, this is the functional operator that returns the same results.
  std::optional<c10::OperatorHandle> returning = {};
  std::vector<c10::IValue> arguments = {};
  std::vector<at::Tensor> results = {};    // destinations of the results; undefined for views
  std::vector<at::Tensor> last_used = {};  // freed after this call
};

/// A call to host code.
struct HostCall {
  std::function<void()> call;
  Gradients gradients;  // used by the call
};

/// The compiled code for a part of a step.
class CompiledCode {
 public:
  virtual ~CompiledCode() = default;

  /// Runs the code and returns newly allocated tensors. The code may write to the inputs.
  virtual std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) = 0;
};

/// A call to compiled code that replaces the operators in one part of a step.
struct CompiledCall {
  size_t begin;  // the first call in the step that is replaced
  size_t end;    // one past the last
  std::shared_ptr<CompiledCode> code = {};
  std::vector<at::Tensor> inputs = {};     // all memory that the code reads or writes
  std::vector<at::Tensor> written = {};    // the inputs that it writes
  std::vector<at::Tensor> results = {};    // where to put the results
  std::vector<at::Tensor> last_used = {};  // freed after this call
  int bits = 64;                           // bits in the least precise type used
};

/// Describes a tensor created outside the step, as it was when the step was recorded.
struct Input {
  explicit Input(const at::Tensor& tensor);
  bool is_unchanged() const;
  /// Returns whether the other tensor has the same sizes, strides, and type.
  bool is_like(const Input& other) const;

  WeakTensor tensor;
  const c10::StorageImpl* storage;
  const void* data;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  c10::ScalarType dtype;
  bool requires_grad;
  bool is_parameter;  // a leaf that requires a gradient, or a frozen leaf with a gradient
  bool is_foreign;    // not allocated by an allocator
};

/// The gradient of a parameter, before and after the step.
struct LeafGradient {
  WeakTensor parameter;
  WeakTensor before;
  at::Tensor after;
  bool is_dropped;     // the step discards the earlier gradient, regardless of its value
  bool is_new_memory;  // also, a call allocates new memory for the later gradient
};

/// Identifies values that the host passes to a call: the numbers among its arguments, or memory
/// that no call has written to. Replays do not recompute these values.
struct HostValue {
  bool operator==(const HostValue&) const = default;

  std::string op;
  size_t hash;
};

/// The properties that two recordings of a step must share before either of them is replayed.
struct StepTrace {
  /// Returns whether the other trace has the same operators, with inputs of the same sizes and
  /// types.
  bool is_like(const StepTrace& other) const;

  /// Returns the first operator for which the host values in the two traces differ, or null. The
  /// traces must have the same operators.
  const std::string* find_changed_value(const StepTrace& other) const;

  std::vector<Input> inputs = {};
  std::vector<HostValue> host_values = {};  // of all calls, in order
  Conditions conditions = {};               // conditions of the recording
};

/// Indicates whether a recorded step can currently be replayed in place of the step.
enum class Fit { fits, changed, gone };

/// Contains the operators below autograd from one run of a step on the CPU, and the memory that
/// they write to.
struct RecordedStep {
  using Calls = std::vector<std::variant<OperatorCall, HostCall, CompiledCall>>;

  /// Returns `gone` if a parameter no longer exists. Returns `changed` if the step would read or
  /// write different memory or compute different gradients, or if a condition no longer holds.
  Fit fit() const;

  /// Reruns the step using the given calls, and then restores the thread's state. The calls are the
  /// step's own calls, or compiled calls that replace some of them.
  void replay(const Calls& by);
  void replay() { replay(calls); }

  /// Reruns the operators from call `begin` up to, but not including, call `end`.
  void replay_part(size_t begin, size_t end) const;

  void drop_gradients() const;
  void forget_dropped_gradients() const;

  Calls calls = {};
  std::vector<at::Tensor> constants = {};  // not recomputed; in each, all elements are equal
  StepTrace trace = {};
  std::vector<LeafGradient> gradients = {};
  std::vector<c10::VariableVersion> written = {};  // for tensors created outside the step
  std::vector<c10::Storage> memory = {};           // used by the calls
  at::DataPtr pool = {};
};

/// Returns whether the call can be part of compiled code. Compiled code runs with gradients
/// disabled.
bool can_compile(const RecordedStep::Calls::value_type& call);

/// Runs the code below autograd and returns its results without storing them in the step.
std::vector<at::Tensor> run_code(const CompiledCall& call);

}  // namespace sconce::detail
