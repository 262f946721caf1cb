#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/recorded_step.hpp"
#include "capture/step_memory.hpp"

namespace sconce::detail {

/// The outcome of a recording.
struct RecordingOutcome {
  std::unique_ptr<RecordedStep> step;
  std::string reject_reason;  // why replay is impossible; empty if it is possible
};

/// Records the operators of one step in one thread.
class Recorder {
 public:
  /// `earlier` is the trace of the previous recording of the same step, or null.
  explicit Recorder(const StepTrace* earlier);

  /// Runs the operator with the arguments on the stack, and adds it to the step.
  void call(OperatorCall call, torch::jit::Stack* stack);

  /// Adds a call to a composite operator, with the original tensors as arguments. The call is only
  /// needed if the operator computed the result without calling other operators.
  void composite_call(OperatorCall call, const at::Tensor& result);

  /// Adds a call to host code that has already run.
  void host_call(std::function<void()> call);

  /// Marks the step as one that cannot be replayed. Only the first reason is kept.
  void refuse(std::string reason);

  /// Returns the non-tensor conditions of the step, so that callers can add to them.
  Conditions& conditions() { return step_->trace.conditions; }

  /// Ends the recording at the end of the step, and returns the outcome.
  RecordingOutcome finish();

 private:
  struct Results {
    std::vector<at::Tensor> tensors = {};
    std::vector<bool> are_new = {};  // whether the call allocated the result's memory
    bool any_new = false;
  };
  struct Cast {
    OperatorCall call;
    StepMemory::Id result;
  };

  void note_external(const at::Tensor& tensor);
  void add_collective(const OperatorCall& call);
  bool write(const OperatorCall& call);
  void forget_casts(const at::Tensor& written);
  void merge_cast(const OperatorCall& call, const at::Tensor& result);
  Results results_of(const OperatorCall& call, c10::ArrayRef<c10::IValue> values) const;
  void add(OperatorCall call, c10::ArrayRef<c10::IValue> values);
  void add_named(OperatorCall call, const Results& results, bool is_functional);
  bool add_with_out(OperatorCall& call, const Results& results);
  Gradients gradients_now() const;
  void end_gradients();
  size_t here() const { return step_->calls.size(); }

  std::unique_ptr<RecordedStep> step_ = std::make_unique<RecordedStep>();
  StepMemory memory_ = {};
  std::vector<Cast> casts_ = {};  // only of tensors that have not been modified since
  std::string reject_reason_ = {};
  // Tensors whose memory was allocated outside the step. The weak references prevent new tensors
  // from being created at the same addresses.
  std::unordered_map<const c10::TensorImpl*, WeakTensor> seen_ = {};
  std::unordered_map<const c10::TensorImpl*, WeakTensor> gradients_before_ = {};
};

}  // namespace sconce::detail
