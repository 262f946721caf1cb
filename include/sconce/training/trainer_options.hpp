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

/// Options of `Trainer`. The first three have the names of d2l's `Trainer`.
struct TrainerOptions {
  int max_epochs = 1;  ///< number of epochs, at least 1
  /// 0 for the CPU or 1 for a GPU, in a process group `gpu(local_rank() % num_gpus())`; 1 on a
  /// machine without a GPU warns and uses the CPU. With neither `num_gpus` nor `device` it is the
  /// device of the process group, which is `try_gpu()` for a group of one.
  std::optional<int> num_gpus = {};
  double gradient_clip_val = 0;  ///< maximum norm of all of the optimizer's gradients together; 0
                                 ///< clips nothing
  /// Precision of forward and loss; fp16 on a CPU warns.
  amp::Precision precision = amp::Precision::fp32;
  int accumulate_grad_batches = 1;  ///< number of batches for each step, at least 1; the step uses
                                    ///< the mean of their gradients, or weights them by
                                    ///< `StepOutput::count`
  /// Stops a fit when this time has passed since its beginning, after the step that is running,
  /// such as `std::chrono::hours(12)`. It counts the time of this call alone, so a resumed fit has
  /// the whole time again. In a process group the fit stops at the next save or end of an epoch
  /// after any rank's time has passed.
  std::optional<std::chrono::duration<double>> max_time = {};
  std::optional<torch::Device> device = {};  ///< the device, instead of `num_gpus`
  /// Makes each step of a fit a replay, on a GPU of a CUDA graph; see `CapturedStep`. The
  /// optimizer must be sconce's, and its `is_capturable()` true. Batches of another shape than the
  /// first, such as a smaller last one, run uncaptured. Callbacks get `on_before_optimizer_step`
  /// after the step. What callbacks change takes effect: the mode of a layer, frozen or thawed
  /// parameters, parameter groups, and the learning rate; the step is then captured again, unless
  /// only the rate has changed. On a GPU, schedules of the momentum do not take effect. A process
  /// group of several works on the CPU only.
  bool graph = false;
  /// Compiles each step of a fit, on the CPU, and keeps the faster of the compiled step and the
  /// replay; see `sconce::program::inductor`. Implies `graph`. A checkpoint keeps which one that
  /// was, so that a resumed fit runs the same one. All ranks of a process group run the same one.
  std::shared_ptr<StepCompiler> compiler = {};
  /// Runs one batch of training and of testing, to find errors. Checkpoints are neither loaded nor
  /// saved.
  bool fast_dev_run = false;

  /// Loss of models without a `training_step`, such as `torch::mse_loss`. If it is empty, the loss
  /// is the cross entropy of int64 targets, without the targets of -100. A function that returns a
  /// `LossSum` weights batches by their tokens.
  Loss loss = {};
  /// Metrics besides the loss, such as `sconce::Metrics{{"acc", metrics::accuracy()}}`. Without a
  /// value there is the accuracy, as "acc", if `loss` is empty
  /// and the model has no step that returns a loss alone.
  std::optional<Metrics> metrics = {};

  /// The processes that train together. Metrics are computed over all of them.
  distributed::ProcessGroup process_group = {};
};

}  // namespace sconce
