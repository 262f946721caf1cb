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

/// Options for `Trainer`. The first three have the names of d2l's `Trainer`.
struct TrainerOptions {
  int max_epochs = 1;  ///< number of epochs, at least 1
  /// 0 for the CPU, or 1 for a GPU, which in a process group is `gpu(local_rank() % num_gpus())`.
  /// On a machine without a GPU, 1 warns and uses the CPU. If neither `num_gpus` nor `device` is
  /// set, the trainer uses the device of the process group, which is `try_gpu()` for a group of
  /// one.
  std::optional<int> num_gpus = {};
  double gradient_clip_val = 0;  ///< maximum norm of all of the optimizer's gradients together; 0
                                 ///< clips nothing
  /// Precision of the forward pass and the loss. fp16 on a CPU warns.
  amp::Precision precision = amp::Precision::fp32;
  /// Number of batches per step, at least 1. The step uses the mean of their gradients, or weights
  /// them by `StepOutput::count`.
  int accumulate_grad_batches = 1;
  /// Stops a fit when this much time has passed since it started, after the current step, such as
  /// `std::chrono::hours(12)`. Only this call counts, so a resumed fit has the full time again. In
  /// a process group, the fit stops at the next save or end of an epoch after the time of any rank
  /// has passed.
  std::optional<std::chrono::duration<double>> max_time = {};
  std::optional<torch::Device> device = {};  ///< the device to use, instead of `num_gpus`
  /// Replays each step of a fit, on a GPU as a CUDA graph; see `CapturedStep`. The optimizer must
  /// be one of sconce's, with `is_capturable()` true. Batches whose shape differs from the first,
  /// such as a smaller last batch, run uncaptured. Callbacks get `on_before_optimizer_step` after
  /// the step. Callbacks may change the mode of a layer, freeze or unfreeze parameters, and change
  /// parameter groups or the learning rate. The step is then captured again, unless only the
  /// learning rate has changed. On a GPU, momentum schedules do not take effect. Process groups of
  /// more than one are supported only on the CPU.
  bool graph = false;
  /// Compiles each step of a fit, on the CPU, and keeps whichever is faster, the compiled step or
  /// the replay; see `sconce::program::inductor`. Implies `graph`. A checkpoint stores the choice,
  /// so a resumed fit runs the same one. All ranks of a process group run the same one.
  std::shared_ptr<StepCompiler> compiler = {};
  /// Runs a single training batch and a single test batch, to find errors. Checkpoints are neither
  /// loaded nor saved.
  bool fast_dev_run = false;

  /// Loss of models without a `training_step`, such as `torch::mse_loss`. If empty, the loss is the
  /// cross entropy of int64 targets, ignoring targets of -100. A function that returns a `LossSum`
  /// weights batches by their tokens.
  Loss loss = {};
  /// Metrics in addition to the loss, such as `sconce::Metrics{{"acc", metrics::accuracy()}}`. If
  /// not set, the accuracy is computed as "acc", provided that `loss` is empty and no step of the
  /// model returns only a loss.
  std::optional<Metrics> metrics = {};

  /// The processes that train together. Metrics are computed over all of them.
  distributed::ProcessGroup process_group = {};
};

}  // namespace sconce
