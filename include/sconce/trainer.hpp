#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/amp/grad_scaler.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/devices.hpp"

namespace sconce::distributed {
class ProcessGroup;
}  // namespace sconce::distributed

namespace sconce::io {
class Checkpoint;
}  // namespace sconce::io

namespace sconce::optim {
class ExponentialMovingAverage;
namespace lr_scheduler {
class LRScheduler;
}  // namespace lr_scheduler
}  // namespace sconce::optim

namespace sconce {

/// What a model's forward computes in; parameters and their gradients are float32 in each.
enum class Precision {
  fp32,  ///< float32, as LibTorch is set: on a GPU its convolutions may round to TF32
  tf32,  ///< float32, with TF32 in matrix products and convolutions: on GPUs only
  bf16,  ///< autocast to bfloat16
  fp16   ///< autocast to float16, with a GradScaler
};

/// What a Trainer does. The first three are d2l's; those that have a default there have the same.
struct TrainerOptions {
  int max_epochs = 1;            ///< at least 1
  int num_gpus = 0;              ///< 0 or 1; 1 on a machine without a GPU warns and uses the CPU
  double gradient_clip_val = 0;  ///< largest norm of all gradients that the optimizer steps, taken
                                 ///< together; 0 clips nothing
  Precision precision = Precision::fp32;
  int accumulate_grad_batches = 1;  ///< batches whose mean gradient makes one step; at least 1
  std::optional<torch::Device> device = {};  ///< a device by name, in the place of num_gpus
  bool fast_dev_run = false;    ///< one epoch of one batch, also for testing: does the program run?
  std::ostream* log = nullptr;  ///< takes a line an epoch and two at the end; null: no lines

  /// The processes that train together, this one among them: metrics are those of all, and only
  /// rank 0 logs. Null: this one alone. The caller keeps it alive.
  const distributed::ProcessGroup* process_group = nullptr;
};

/// When a scheduler is stepped. Python: Lightning's "interval".
enum class SchedulerInterval {
  epoch,  ///< after each epoch
  step    ///< after each of the optimizer's steps
};

/// The batches to fit and what goes along with the optimizer, which the caller keeps alive.
struct FitData {
  data::Batches train;
  std::optional<data::Batches> test = {};  ///< to test on after each epoch

  /// Stepped by itself, also after a step that the scaler skips; null: the learning rates stay.
  optim::lr_scheduler::LRScheduler* scheduler = nullptr;
  SchedulerInterval interval = SchedulerInterval::epoch;

  /// Updated after each of the optimizer's steps, and tested in the model's place; null: neither.
  optim::ExponentialMovingAverage* ema = nullptr;

  /// Where the fit goes on, if the checkpoint resumes, and where it is saved after each epoch, with
  /// test_acc for its metric. Null: neither.
  io::Checkpoint* checkpoint = nullptr;
  int64_t save_every = 0;  ///< saves within an epoch too, after so many steps each; 0: not

  /// Asked after each step, in a process group only before each save, since all ranks must stop at
  /// one step: whether to save and to end the fit. Empty: never.
  std::function<bool()> should_stop = {};
};

/// What one epoch came to. Accuracies are shares of 1 of all answers, of which an example may have
/// several; test_acc is empty without test data.
struct EpochMetrics {
  int epoch = 0;                        ///< counted from 1
  double loss = 0;                      ///< mean cross entropy over the examples
  double train_acc = 0;                 ///< measured while training, as the parameters changed
  std::optional<double> test_acc = {};  ///< measured after the epoch
  int64_t examples = 0;                 ///< examples trained on
  double seconds = 0;                   ///< training, and saves within the epoch, without testing
};

/// What `Trainer::fit` came to, an entry an epoch.
struct FitResult {
  std::vector<EpochMetrics> epochs = {};  ///< those before a resumed fit's checkpoint too
  bool stopped = false;                   ///< by should_stop, before the last epoch was over

  /// Examples trained on per second of training, over all epochs; nan without an epoch.
  double examples_per_second() const;
};

/// Trains a classifier: the loop of d2l's `Trainer`, by cross entropy.
/// A model is any module, holder or `std::shared_ptr` of a module whose `forward` takes the data
/// `(N, ...)` and returns the logits `(N, classes, ...)`; the target is int64 `(N, ...)`, a class
/// for each of them: `(N,)`, or `(N, H, W)` for a class a pixel. It may be a `nn::DataParallel` of
/// one, whose first device is the trainer's, or, with a process group, must be a
/// `nn::DistributedDataParallel` of one: then every rank makes the same calls, each with its own
/// rows (`data::DistributedSampler`) in as many batches as the others. The loop reads nothing from
/// the device within an epoch (but for an optimizer that is not one of sconce's in fp16, and
/// saves); at its end it reads the sums, and the test's sums where there is one.
class Trainer {
  struct None {};

 public:
  /// @throw c10::Error if max_epochs or accumulate_grad_batches is below 1, num_gpus is not 0 or 1,
  /// gradient_clip_val is negative or not finite, num_gpus and device are both given, the device is
  /// not there, or the precision is tf32 and the device no GPU.
  explicit Trainer(TrainerOptions options = {});
  /// `Trainer({})`, which could else be a copy too: without options.
  explicit Trainer(std::initializer_list<None>) : Trainer() {}

  /// The device that models and batches are moved to.
  torch::Device device() const { return device_; }

  /// What scales the losses in fp16; disabled in the other precisions. Its state lasts from fit to
  /// fit.
  amp::GradScaler& scaler() { return scaler_; }

  /// Returns the batch on the trainer's device; a batch that is there already is not copied.
  data::Dataset prepare_batch(const data::Dataset& batch) const;

  /// Moves the model to the trainer's device, in place: an optimizer that was built before keeps
  /// its parameters.
  void prepare_model(torch::nn::Module& model) const { model.to(device_); }

  /// Prepares the model, then trains it for max_epochs over `data.train`, whose order is that of
  /// the epoch's number from 0, and tests after each. An epoch's last step may be of fewer batches.
  /// Leaves the model on the device, in training mode, with its own values and not the averages.
  /// With a checkpoint, whose folder it keeps from before the first step to the Checkpoint's end,
  /// the result is, bit for bit on the CPU, the same however often the fit was stopped, killed and
  /// resumed, with the same data, options and number of threads; from three ranks on the first step
  /// after it may add their gradients in another order. A resumed fit has the learning rates and
  /// the other options of optimizer and scheduler from the file, and warns where these were others.
  /// @throw c10::Error if `data.train` or `data.test` has no batches; if a target is no class for
  /// each of the logits; with a checkpoint if the optimizer is none of sconce's, its group is not
  /// the trainer's, fast_dev_run is set or the data has another number of batches, or a step other
  /// ones, than when it was saved, and what Checkpoint throws; if a OneCycleLR has fewer steps than
  /// the fit; if save_every is negative, or it or should_stop is without a checkpoint; in a process
  /// group if the model is no DistributedDataParallel, or one that is not on the trainer's device,
  /// or if a rank has another number of training batches; else what the model throws.
  template <class M>
  FitResult fit(M& model, torch::optim::Optimizer& optimizer, const FitData& data) {
    return fit_model(as_model(model), optimizer, data);
  }

  /// Trains the model, which is on the device already, once over `data.train`, in its order, with
  /// what goes along, and does not test. Leaves it in training mode. The result is epoch 1.
  /// @throw c10::Error if there are no batches, if a target is no class for each of the logits, or
  /// with a checkpoint, save_every or should_stop, which are `fit`'s; in a process group as `fit`;
  /// else what the model throws.
  template <class M>
  EpochMetrics fit_epoch(M& model, torch::optim::Optimizer& optimizer, const FitData& data) {
    const Model checked = as_model(model);
    check_fit(checked, data, "sconce::Trainer::fit_epoch");
    return train_epoch(checked, optimizer, data);
  }

  /// Returns the share of the batches' examples that the model, which is on the device already,
  /// classifies rightly. Runs in the trainer's precision, without gradients and in evaluation mode,
  /// and restores the mode of every module in the model. In a process group the share is that of
  /// all ranks' batches, of which a rank may have none, and buffers become those of rank 0.
  /// @throw c10::Error if there are no batches or a target is no class for each of the logits; else
  /// what the model throws.
  template <class M>
  double evaluate(M& model, const data::Batches& batches) const {
    return test_model(as_model(model), batches);
  }

 private:
  // A model as the loop sees it, so that the loop is compiled once and not for every model.
  struct Model {
    using Forward = std::function<torch::Tensor(const torch::Tensor&)>;

    torch::nn::Module& module;
    Forward train;
    Forward test = train;
    // Keeps gradients from being averaged while what it returns lives; empty without ranks.
    std::function<std::shared_ptr<void>()> no_sync = {};
  };

  struct Epoch;  // how far an epoch is
  class Saver;   // saves a fit and resumes it

  template <class M>
  static Model as_model(M& model) {
    const auto forward_of = [](auto& callee) -> Model::Forward {
      return [&callee](const torch::Tensor& x) { return callee.forward(x); };
    };
    if constexpr (std::is_base_of_v<torch::nn::Module, M>) {
      return {model, forward_of(model)};
    } else if constexpr (requires { model.no_sync(); }) {  // a DistributedDataParallel
      // To test, ranks need not have as many batches, so no forward may wait for the others.
      return {*model.module(), forward_of(model), forward_of(*model.module()),
              [&model] { return std::shared_ptr<void>(new auto(model.no_sync())); }};
    } else {
      return {*model, forward_of(*model)};
    }
  }

  void check_fit(const Model& model, const FitData& data, const char* who) const;
  void check_schedule(const FitData& data, int epochs_done, int64_t batches_done) const;
  FitResult fit_model(const Model& model, torch::optim::Optimizer& optimizer, const FitData& data);
  EpochMetrics train_epoch(const Model& model, torch::optim::Optimizer& optimizer,
                           const FitData& data);
  // What is left of the epoch; `after_step` says whether to stop, which leaves no metrics.
  std::optional<EpochMetrics> train_model(const Model& model, torch::optim::Optimizer& optimizer,
                                          const FitData& data, Epoch& epoch,
                                          const std::function<bool()>& after_step);
  // The model's (N, classes) and their loss against y, in the trainer's precision.
  std::pair<torch::Tensor, torch::Tensor> output_and_loss(const Model& model,
                                                          const torch::Tensor& x,
                                                          const torch::Tensor& y) const;
  void step(torch::optim::Optimizer& optimizer, const FitData& data);
  double test_model(const Model& model, const data::Batches& batches) const;

  TrainerOptions options_;
  torch::Device device_;
  amp::GradScaler scaler_;
};

}  // namespace sconce
