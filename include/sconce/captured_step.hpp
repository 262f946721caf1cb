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

/// What a CapturedStep does with a batch whose shapes or types differ from the first batch's.
enum class ShapeMismatch {
  run_eagerly,  ///< run the step without the graph
  error         ///< throw c10::Error
};

/// Options of a CapturedStep.
struct CapturedStepOptions {
  int num_warmup_iters = 3;  ///< number of eager steps before the capture, at least 1
  /// What to do with a batch unlike the first.
  ShapeMismatch on_shape_mismatch = ShapeMismatch::run_eagerly;
  /// Generators that the step draws from, besides the default generator of the device.
  std::vector<at::Generator> generators = {};
  /// Modules that the step runs and whose modes may change. After a change of their mode or their
  /// submodules', the step is captured again. So it is after their parameters or buffers were
  /// moved, frozen or thawed, which on the CPU is noticed without this option too.
  std::vector<std::shared_ptr<torch::nn::Module>> modules = {};
  /// Compiles the step; null replays it. On the CPU only. See `sconce::program::inductor`.
  std::shared_ptr<StepCompiler> compiler = {};
};

/// Runs a training step, or any other function of tensors, by replaying what its first calls have
/// done. On a GPU it is a CUDA graph, with one launch for all kernels. On the CPU it is the list of
/// LibTorch's operators below autograd, run again in the same memory. Each call computes, bit for
/// bit, what the function would compute from a fresh copy of the batch that has the first batch's
/// memory format. Given a slice, whose strides or alignment make kernels round differently, the
/// function itself may differ from that in the last bits.
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
/// stream; the next call captures. On the CPU a call captures only if an earlier call ran the same
/// operators, because the first steps may also make the optimizer's state. Every later call copies
/// its batch into the captured inputs and replays. Only batches with the shapes and types of the
/// first count as warm-up; a batch whose step throws is not the first. On a GPU the current stream
/// and the side stream wait for each other.
///
/// The function must obey the rules of CUDA graphs, on both devices: it reads no values on the
/// host, makes no synchronous copy and does the same work each time, since a replay does not run
/// its host code. It calls `zero_grad` itself, so that the gradients lie in the memory of the
/// capture. It may call sconce optimizers that return true from `is_capturable()`; on a GPU a
/// learning rate schedule takes effect if the learning rate is a tensor there. It may also call
/// `clip_grad_norm_`, a GradScaler with its `update`, AutocastGuards, and `update` of a metric. No
/// loss of an earlier step may still hold the autograd graph of the parameters.
///
/// If parameter groups of its optimizers are added or removed, their parameters are frozen or
/// thawed, the factors of its scaler change, or something about the `modules` of the options does,
/// the step is captured again: on the CPU after one more eager call, on a GPU after a warm-up.
///
/// On the CPU a replay runs the steps of sconce optimizers and schedulers and the updates of an
/// ExponentialMovingAverage as they are, so any of their options and states may change. On a GPU, a
/// function that steps a scheduler or updates such an average is refused. Gradients may also add up
/// over calls on the CPU. If the step would now meet other memory or other gradients, because a
/// parameter was moved, frozen or resized or a gradient dropped, it is captured again. What cannot
/// be replayed is refused by the call after the one that was recorded, before it runs anything,
/// which is the first call after the warm-up or a later one: a call that changes something that a
/// replay would not change, such as `ReduceLROnPlateau::step`, a host read, a shape that
/// depends on values, a sparse tensor, an operator in another thread (such as DataParallel's), a
/// collective other than `all_reduce` and `broadcast`, a checkpoint that sets a generator back,
/// numbers that the host has computed anew in each step, such as those of LibTorch's own Adam, and
/// a tensor that the step makes on memory of the host by `torch::from_blob`. Where another library
/// has the dispatch key that records operators, the step runs as it is.
///
/// In a process group on the CPU, the step may run a DistributedDataParallel. A replay has the
/// collectives of a plain step, so ranks that replay may train with others that do not. Processes
/// with compilers agree on the form of the step and on the call at which it begins. All of them
/// must have a compiler, or none.
///
/// During a call autocast does not cache casts, because a replay would reuse the weights of the
/// capture. On the CPU a replay computes equal casts once.
///
/// An object serves one thread at a time.
/// Python: `torch.cuda.graph`, with the warm-up shown in PyTorch's notes on CUDA graphs.
class CapturedStep {
 public:
  using Tensors = std::vector<torch::Tensor>;                 ///< tensors of a batch or a result
  using Step = std::function<Tensors(const Tensors& batch)>;  ///< the function to capture

  /// Everything that `step` captures by reference must outlive this object.
  /// @throw c10::Error if `device` is not available, `step` is empty, `num_warmup_iters` is below
  /// 1, one of the modules is null, or there is a compiler for another device than the CPU.
  CapturedStep(torch::Device device, Step step, CapturedStepOptions options = {});
  ~CapturedStep();
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  /// Runs one step and returns the outputs of the function, detached. A batch on another device is
  /// copied to the device first. Each replay returns the same tensors, so the next call overwrites
  /// their values. After an error on the CPU that a replay meets, such as an index out of range,
  /// the step is half done, as the plain step would be.
  /// @throw c10::Error if:
  /// - the batch contains an undefined tensor;
  /// - the batch differs from the first and `on_shape_mismatch` is `error`;
  /// - the step cannot be captured. The device stays usable, and none of the step was run on it;
  /// - on the CPU, a parameter that the step was captured with no longer exists;
  /// - a step on the CPU is being captured in this thread, or another call of this object runs.
  Tensors operator()(const Tensors& batch);

  /// Returns whether the step has been captured.
  bool is_captured() const;

  /// Returns how the last call with a batch like the first ran the step. Calls that compare or time
  /// forms count as replays.
  StepMode mode() const;

  /// Returns why the step is compiled or is not, such as the times of both forms.
  std::string mode_reason() const;

 private:
  struct Graph;  // in src/

  Tensors step(const Tensors& batch);
  Tensors like_fresh(const Tensors& batch, bool is_like) const;
  Tensors run(const Tensors& batch, detail::Conditions* of_graph = nullptr) const;
  Tensors warm_up_on_cpu(const Tensors& batch, bool is_like);
  Tensors run_aside(const Tensors& batch) const;
  void capture();
  void drop_graph();
  bool is_like_first(const Tensors& batch) const;

  torch::Device device_;
  Step step_;
  CapturedStepOptions options_;
  std::optional<c10::Stream> side_ = {};  // for a GPU
  std::optional<Tensors> inputs_ = {};    // on the device, of the first batch's shapes
  int warmed_up_ = 0;                     // number of steps done
  std::atomic<bool> is_running_ = false;
  std::unique_ptr<Graph> graph_;                   // of a GPU
  std::unique_ptr<detail::CpuGraphs> cpu_graphs_;  // null on a GPU
};

}  // namespace sconce
