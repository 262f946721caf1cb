#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <optional>

#include "sconce/amp/mixed_precision.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/fwd.hpp"
#include "sconce/step_compiler.hpp"
#include "sconce/training/loss.hpp"
#include "sconce/training/metrics.hpp"

namespace sconce {

/// Options for `Trainer`. The first three options have the same names as in d2l's `Trainer`.
struct TrainerOptions {
  int max_epochs = 1;  ///< number of epochs, at least 1
  /// Number of GPUs to use: 0 for the CPU or 1 for a GPU. In a process group, the GPU is
  /// `gpu(local_rank() % num_gpus())`. On a machine without a GPU, a value of 1 causes a warning,
  /// and the Trainer uses the CPU. If neither `num_gpus` nor `device` is set, the Trainer uses the
  /// process group's device, which is `try_gpu()` for a single-process group.
  std::optional<int> num_gpus = {};
  /// Maximum total norm of the optimizer's gradients. If 0, gradients are not clipped.
  double gradient_clip_val = 0;
  /// Precision for the forward pass and the loss. On a CPU, fp16 causes a warning.
  amp::Precision precision = amp::Precision::fp32;
  /// Number of batches per step, at least 1. The step averages the batches' gradients, weighted by
  /// `StepOutput::count` if it is defined.
  int accumulate_grad_batches = 1;
  /// Maximum duration of a fit, such as `std::chrono::hours(12)`. When the time is up, the fit
  /// stops after the current step. The limit applies to each call separately, so a resumed fit can
  /// run for the full duration again. In a process group, once the time is up on any rank, all
  /// ranks stop at the next save or at the end of the epoch, whichever comes first.
  std::optional<std::chrono::duration<double>> max_time = {};
  std::optional<torch::Device> device = {};  ///< device to use instead of `num_gpus`
  /// Whether to capture a fit's steps and replay them (on a GPU, as CUDA graphs). See
  /// `CapturedStep`. The optimizer must be a sconce optimizer for which `is_capturable()` returns
  /// true. Batches that differ in shape from the first batch, such as a smaller last batch, run
  /// without capture. If `graph` is enabled, `on_before_optimizer_step` is not called until after
  /// the step. Callbacks may change a layer's mode, freeze or unfreeze parameters, and change
  /// parameter groups or the learning rate. The step is then captured again, unless only the
  /// learning rate has changed. On a GPU, momentum schedules do not take effect. Multi-process
  /// groups are supported only on the CPU.
  bool graph = false;
  /// Compiler for a fit's training steps on the CPU. The fit keeps the compiled step or the replay,
  /// whichever is faster. See `sconce::program::inductor`. Implies `graph`. The choice is stored in
  /// checkpoints. All ranks of a process group keep the same variant, as does a resumed fit.
  std::shared_ptr<StepCompiler> compiler = {};
  /// Whether to run only a single training batch and a single test batch, as a quick check for
  /// errors. Checkpoints are neither loaded nor saved.
  bool fast_dev_run = false;

  /// Loss function for models without a `training_step`, such as `torch::mse_loss`. Defaults to
  /// cross entropy for int64 targets, which ignores targets equal to -100. If the loss function
  /// returns a `LossSum`, batches are weighted by the returned counts.
  Loss loss = {};
  /// Metrics in addition to the loss, such as `sconce::Metrics{{"acc", metrics::accuracy()}}`.
  /// Defaults to accuracy, named "acc", unless `loss` is set or one of the model's steps returns
  /// only a loss.
  std::optional<Metrics> metrics = {};

  /// The process group used for training. Metrics are computed over all of the group's processes.
  distributed::ProcessGroup process_group = {};
};

}  // namespace sconce
