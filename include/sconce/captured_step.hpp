#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"
#include "sconce/step_compiler.hpp"

namespace sconce {

namespace detail {
class Conditions;  // in src/
class CpuGraphs;   // in src/
}  // namespace detail

/// What a `CapturedStep` does with a batch whose shapes or types differ from the first batch.
enum class ShapeMismatch {
  run_eagerly,  ///< run the step without the graph
  error         ///< throw c10::Error
};

/// Options for `CapturedStep`.
struct CapturedStepOptions {
  int num_warmup_iters = 3;  ///< number of eager steps before the capture, at least 1
  /// What to do with a batch whose shapes or types differ from the first batch.
  ShapeMismatch on_shape_mismatch = ShapeMismatch::run_eagerly;
  /// Generators that the step draws from, in addition to the device's default generator.
  std::vector<at::Generator> generators = {};
  /// Modules that the step runs and whose mode may change. When the mode of a module or submodule
  /// changes, or when their parameters or buffers are moved, frozen, or unfrozen, the step is
  /// captured again. On the CPU, changes to parameters and buffers are detected even without this
  /// option.
  std::vector<std::shared_ptr<torch::nn::Module>> modules = {};
  /// Compiles the step. If null, the step is replayed. CPU only; see `sconce::program::inductor`.
  std::shared_ptr<StepCompiler> compiler = {};
};

/// Runs a training step, or any other function of tensors, by replaying the work of its first
/// calls. On a GPU, the replay is a CUDA graph, which launches all kernels at once. On the CPU, it
/// is a recorded list of LibTorch operators, which run below autograd in the same memory.
///
///     CapturedStep step(try_gpu(), [&](const std::vector<torch::Tensor>& batch) {
///       optimizer.zero_grad();
///       const auto loss = loss_of(net->forward(batch[0]), batch[1]);
///       loss.backward();
///       optimizer.step();
///       return std::vector<torch::Tensor>{loss};
///     });
///     for (const auto& batch : batches) sum += step({batch.data, batch.target})[0];
///
/// Each call runs one step. The first `num_warmup_iters` calls run eagerly, on a GPU on a side
/// stream, and the next call captures. On the CPU, a call captures only if an earlier call ran the
/// same operators, because the first steps may also create the optimizer's state. Every later call
/// copies its batch into the captured inputs and replays. Only batches with the shapes and types of
/// the first batch count toward the warmup. A batch whose step throws does not count as the first.
/// On a GPU, the current stream and the side stream wait for each other.
///
/// Each call computes, bit for bit, what the function would compute from a fresh copy of the batch
/// in the memory format of the first batch. The function itself may differ from this in the last
/// bits if its input is a slice whose strides or alignment make kernels round differently.
///
/// On both devices, the function must follow the rules of CUDA graphs:
/// - It reads no values on the host, makes no synchronous copies, and does the same work each time,
///   because a replay does not run its host code.
/// - It calls `zero_grad` itself, so that the gradients are allocated in the memory of the capture.
/// - It may step sconce optimizers whose `is_capturable()` is true. On a GPU, a learning rate
///   schedule takes effect if the learning rate is a tensor on that GPU.
/// - It may call `clip_grad_norm_`, a GradScaler including its `update`, AutocastGuards, and
///   `update` of a metric.
/// - No loss of an earlier step may still hold the autograd graph of the parameters.
///
/// The step is captured again, on the CPU after one more eager call and on a GPU after another
/// warmup, if parameter groups of its optimizers are added or removed, if their parameters are
/// frozen or unfrozen, if the factors of its scaler change, or if the `modules` of the options
/// change.
///
/// On the CPU, a replay calls sconce optimizers, schedulers, and the updates of an
/// ExponentialMovingAverage directly, so all of their options and states may change. On a GPU, a
/// function that steps a scheduler or updates such an average is rejected. On the CPU, gradients
/// may also accumulate over several calls. If the step would use different memory or gradients,
/// because a parameter was moved, frozen, or resized, or because a gradient was dropped, it is
/// captured again.
///
/// A function that cannot be replayed is rejected with an error by the call after the recorded one,
/// before it runs anything. That is the first call after the warmup or a later one. The function is
/// rejected if it contains:
/// - a call that changes something that a replay would not change, such as
///   `ReduceLROnPlateau::step`;
/// - a host read, a shape that depends on values, or a sparse tensor;
/// - an operator in another thread, as in DataParallel;
/// - a collective other than `all_reduce` and `broadcast`;
/// - an activation checkpoint that resets a generator;
/// - numbers that the host recomputes in each step, such as those of LibTorch's own Adam;
/// - a tensor that the step creates on host memory with `torch::from_blob`.
///
/// If another library uses the dispatch key that records operators, the step runs unchanged.
///
/// In a process group on the CPU, the step may run a DistributedDataParallel. A replay runs the
/// same collectives as a plain step, so ranks that replay may train together with ranks that do
/// not. Processes with compilers agree on the form of the step and on the call at which it starts.
/// Either all processes must have a compiler, or none.
///
/// During a call, autocast does not cache casts, because a replay would reuse the weights of the
/// capture. On the CPU, a replay computes equal casts once.
///
/// Use an object from one thread at a time.
/// Python: `torch.cuda.graph`, with the warmup shown in PyTorch's notes on CUDA graphs.
class CapturedStep {
 public:
  using Tensors = std::vector<torch::Tensor>;  ///< the tensors of a batch or of a result
  using Step = std::function<Tensors(const Tensors& batch)>;  ///< the function to capture

  /// Everything that `step` captures by reference must outlive this object.
  /// @throw c10::Error if `device` is not available, `step` is empty, `num_warmup_iters` is below
  /// 1, a module is null, or a compiler is given for a device other than the CPU.
  CapturedStep(torch::Device device, Step step, CapturedStepOptions options = {});
  ~CapturedStep();
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  /// Runs one step and returns the outputs of the function, detached. A batch on a different device
  /// is first copied to the device. Every replay returns the same tensors, so the next call
  /// overwrites their values. If a CPU replay fails with an error, such as an index out of range,
  /// the step is half done, as a plain step would be.
  /// @throw c10::Error if:
  /// - the batch contains an undefined tensor;
  /// - the batch differs from the first and `on_shape_mismatch` is `error`;
  /// - the step cannot be captured. The device stays usable, and no part of the step has run on it;
  /// - on the CPU, a parameter that the step was captured with no longer exists;
  /// - a step on the CPU is being captured in this thread, or another call of this object is
  ///   running.
  Tensors operator()(const Tensors& batch);

  /// Returns whether the step has been captured.
  bool is_captured() const;

  /// Returns how the last call with a batch like the first one ran the step. Calls that compare or
  /// time both forms count as replays.
  StepMode mode() const;

  /// Returns why the step is compiled or not, for example the times of both forms.
  std::string mode_reason() const;

 private:
  struct Graph;  // in src/

  Tensors step(const Tensors& batch);
  Tensors like_fresh(const Tensors& batch, bool is_like) const;
  Tensors run(const Tensors& batch, detail::Conditions* conditions = nullptr) const;
  Tensors warm_up_on_cpu(const Tensors& batch, bool is_like);
  Tensors run_on_side_stream(const Tensors& batch) const;
  void capture();
  void drop_graph();
  bool is_like_first(const Tensors& batch) const;

  torch::Device device_;
  Step step_;
  CapturedStepOptions options_;
  std::optional<c10::Stream> side_ = {};  // for a GPU
  std::optional<Tensors> inputs_ = {};    // on the device, with the first batch's shapes
  int warmed_up_ = 0;                     // number of warmup steps done
  std::atomic<bool> is_running_ = false;
  std::unique_ptr<Graph> graph_;                   // on a GPU
  std::unique_ptr<detail::CpuGraphs> cpu_graphs_;  // null on a GPU
};

}  // namespace sconce
