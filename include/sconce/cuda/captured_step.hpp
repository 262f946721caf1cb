#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::cuda {

class StepGraph;  // in src/

/// What a CapturedStep does with a batch of another shape or type than the first.
enum class OtherShape {
  run_eagerly,  ///< makes the step without the graph
  refuse        ///< throws
};

/// How a CapturedStep captures.
struct CapturedStepOptions {
  int warmup = 3;  ///< steps before the capture, at least 1
  OtherShape other_shape = OtherShape::run_eagerly;
  /// What the step draws random numbers from, besides the device's default generator.
  std::vector<at::Generator> generators = {};
};

/// A training step, or any function of tensors, as a CUDA graph: one launch for all its kernels.
///
///     CapturedStep step(gpu(), [&](const std::vector<torch::Tensor>& batch) {
///       optimizer.zero_grad();
///       const auto loss = loss_of(net->forward(batch[0]), batch[1]);
///       loss.backward();
///       optimizer.step();
///       return std::vector<torch::Tensor>{loss};
///     });
///     for (const auto& batch : batches) sum += step({batch.data, batch.target})[0];
///
/// Each call makes one step. On a GPU the first `warmup` calls run eagerly on a side stream; the
/// next is captured and replayed, and so is each later one, after its batch was copied to where the
/// graph reads it. Only batches like the first count. The current stream waits for the side stream
/// and the reverse. On the CPU each call runs the function as it is.
///
/// The function obeys the rules of CUDA graphs: it reads nothing on the host, has no synchronous
/// copy, and does the same each time, for its code on the host is not run in a replay. It calls
/// `zero_grad` itself, so that the gradients lie in the graph's memory. sconce's optimizers belong
/// in it where `is_capturable()`, with a learning rate that is a tensor on the GPU: a schedule then
/// takes effect. `clip_grad_norm_`, a GradScaler and AutocastGuards belong in it too. No loss of an
/// earlier step may still hold the graph of the parameters' gradients.
///
/// During a call autocast keeps no casts, whose weights would be those of the capture.
/// Python: `torch.cuda.graph` with the warm-up that PyTorch's notes on CUDA graphs show.
class CapturedStep {
 public:
  using Tensors = std::vector<torch::Tensor>;
  using Step = std::function<Tensors(const Tensors& batch)>;

  /// @throw c10::Error if `device` is not there, `step` is empty, or `warmup` is below 1.
  CapturedStep(torch::Device device, Step step, CapturedStepOptions options = {});
  ~CapturedStep();
  CapturedStep(const CapturedStep&) = delete;
  CapturedStep& operator=(const CapturedStep&) = delete;

  /// Makes a step with the batch, which is moved to the device if it lies elsewhere, and returns
  /// what the function returned, detached. A replay returns the same tensors each time: the next
  /// call overwrites them.
  /// @throw c10::Error if the batch is not like the first and `other_shape` refuses it; or if the
  /// step cannot be captured, when nothing of it was done on the device, which stays usable.
  Tensors operator()(const Tensors& batch);

  /// Whether there is a graph: never on the CPU.
  bool is_captured() const { return graph_ != nullptr; }

 private:
  Tensors run(const Tensors& batch) const;
  Tensors run_aside(const Tensors& batch) const;
  void capture();
  bool is_like_first(const Tensors& batch) const;

  torch::Device device_;
  Step step_;
  CapturedStepOptions options_;
  std::optional<c10::Stream> side_ = {};  // of a GPU
  std::optional<Tensors> inputs_ = {};    // on the device, like the first batch
  int warmed_up_ = 0;                     // steps
  Tensors outputs_ = {};                  // of the graph
  std::unique_ptr<StepGraph> graph_;
};

}  // namespace sconce::cuda
