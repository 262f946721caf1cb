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

/// Specifies how a `CapturedStep` handles a batch whose shapes or types differ from the first
/// batch's.
enum class ShapeMismatch {
  run_eagerly,  ///< run the step without the graph
  error         ///< throw c10::Error
};

/// Options for `CapturedStep`.
struct CapturedStepOptions {
  int num_warmup_iters = 3;  ///< number of eager steps before the capture, at least 1
  /// How to handle a batch whose shapes or types differ from the first batch's.
  ShapeMismatch on_shape_mismatch = ShapeMismatch::run_eagerly;
  /// Generators from which the step draws random numbers, in addition to the device's default
  /// generator.
  std::vector<at::Generator> generators = {};
  /// Modules that run in the step and may switch between training and evaluation mode. The step is
  /// captured again when a module or submodule changes its mode, or when any of its parameters or
  /// buffers is moved, frozen, or unfrozen. On the CPU, changes to parameters and buffers are
  /// detected even without this option.
  std::vector<std::shared_ptr<torch::nn::Module>> modules = {};
  /// Compiler for the step. If null, the step is replayed without compilation. CPU only. See
  /// `sconce::program::inductor`.
  std::shared_ptr<StepCompiler> compiler = {};
};

/// Runs a training step, or any other function of tensors, by replaying operations captured during
/// its first calls. On a GPU, the replay is a CUDA graph, which launches all kernels at once. On
/// the CPU, the replay is a recorded list of LibTorch operators that run below autograd and reuse
/// the same memory.
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
/// Each call runs one step. The first `num_warmup_iters` calls run eagerly (on a side stream if the
/// device is a GPU), and the next call captures the step. On the CPU, a call captures the step only
/// if an earlier call ran the same operators, because an optimizer may create its state in the
/// first steps. Every later call copies its batch into the captured inputs and replays the step.
/// Only batches with the shapes and types of the first batch count toward the warmup. If the step
/// throws, its batch does not count as the first batch. On a GPU, the CapturedStep synchronizes the
/// current stream and the side stream with each other.
///
/// Each call returns bitwise the same result as calling the function on a fresh copy of the batch,
/// converted to the first batch's memory format. Calling the function directly may produce slightly
/// different values if its input is a slice, because the strides or alignment of the slice can make
/// kernels round differently.
///
/// On both devices, the function must follow the rules of CUDA graphs:
/// - It does not read values on the host or perform synchronous copies.
/// - It performs the same operations in each call, because a replay does not run the host code.
/// - It calls `zero_grad` itself, so that the gradients are allocated in memory that belongs to the
///   capture.
/// - It may step sconce optimizers for which `is_capturable()` returns true.
///   On a GPU, a learning-rate schedule takes effect if the learning rate is a tensor on that GPU.
/// - It may call `clip_grad_norm_`, use a GradScaler (including `update`) and AutocastGuards, and
///   call a metric's `update`.
/// - No loss from an earlier step may keep the autograd graph of the parameters alive.
///
/// The step is captured again if an optimizer gains or loses parameter groups, if any of its
/// parameters is frozen or unfrozen, if the scaler's factors change, or if any of the `modules` in
/// the options changes. Before the new capture, a step on the CPU runs eagerly for one more call,
/// and a step on a GPU repeats the warmup.
///
/// On the CPU, a replay directly calls sconce optimizers, schedulers, and
/// `ExponentialMovingAverage` updates, so you may change any of their options and state. On a GPU,
/// a function that steps a scheduler or updates an ExponentialMovingAverage is rejected. On the
/// CPU, gradients may also accumulate over several calls, and the step is captured again if a
/// parameter is moved, frozen, or resized, or if a gradient is released, because its memory or its
/// gradients have changed.
///
/// On the CPU, if a function cannot be replayed, the call that follows the recorded call throws an
/// error before running any operation. The first call after the warmup, or any later call, may
/// throw this error. The function is rejected if it contains:
/// - a call with side effects that a replay would not reproduce, such as `ReduceLROnPlateau::step`;
/// - a read of a tensor value on the host, a data-dependent shape, or a sparse tensor;
/// - an operator that runs in another thread, as in DataParallel;
/// - a collective other than `all_reduce` and `broadcast`;
/// - an activation checkpoint that resets a generator;
/// - numbers that the host recomputes in each step, as in LibTorch's own Adam;
/// - a tensor that the step creates from host memory with `torch::from_blob`.
///
/// If another library uses the dispatch key that sconce uses to record operators, the step is not
/// recorded and runs eagerly.
///
/// In a process group on the CPU, the step may run a DistributedDataParallel model. A replay runs
/// the same collectives as an eager step, so ranks that replay the step may train together with
/// ranks that run it eagerly. If a compiler is set, the processes agree on whether and when to
/// switch to the compiled step. Set a compiler in all processes or in none of them.
///
/// During a call, the autocast cache is disabled, because a replay would otherwise reuse weights
/// that were cast during the capture. On the CPU, a replay computes identical casts only once.
///
/// Use each object from one thread at a time.
/// Python: `torch.cuda.graph`, with the warmup shown in PyTorch's notes on CUDA graphs.
class CapturedStep {
 public:
  using Tensors = std::vector<torch::Tensor>;                 ///< the tensors of a batch or result
  using Step = std::function<Tensors(const Tensors& batch)>;  ///< the function to capture

  /// All objects that `step` captures by reference must outlive this object.
  /// @throw c10::Error if:
  /// - `device` is not available, `step` is empty, or a module is null;
  /// - `num_warmup_iters` is below 1, or a compiler is given for a device other than the CPU.
  CapturedStep(torch::Device device, Step step, CapturedStepOptions options = {});
  ~CapturedStep();
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  /// Runs one step and returns the function's outputs, detached. A batch on a different device is
  /// first copied to this object's device. Every replay returns the same tensors, so the next call
  /// overwrites their values. If a CPU replay fails, for example because an index is out of range,
  /// the step remains partially executed, as it would without capture.
  /// @throw c10::Error if:
  /// - the batch contains an undefined tensor;
  /// - the batch has different shapes or types than the first batch, and `on_shape_mismatch` is
  ///   `error`;
  /// - the step cannot be captured (the device remains usable, and no part of the step has run on
  ///   it);
  /// - on the CPU, a parameter used in the captured step no longer exists;
  /// - a step on the CPU is being captured in this thread, or another call of this object is
  ///   running.
  Tensors operator()(const Tensors& batch);

  /// Returns whether the step has been captured.
  bool is_captured() const;

  /// Returns how the step ran in the most recent call whose batch matched the first batch. Calls
  /// that compare or benchmark the two variants count as replays.
  StepMode mode() const;

  /// Returns the reason why the step is or is not compiled, such as the measured times of the
  /// replay and the compiled step.
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
  std::optional<c10::Stream> side_ = {};  // only used on a GPU
  std::optional<Tensors> inputs_ = {};    // on the device, with the first batch's shapes
  int warmed_up_ = 0;                     // number of warmup steps done
  std::atomic<bool> is_running_ = false;
  std::unique_ptr<Graph> graph_;                   // on a GPU
  std::unique_ptr<detail::CpuGraphs> cpu_graphs_;  // null on a GPU
};

}  // namespace sconce
