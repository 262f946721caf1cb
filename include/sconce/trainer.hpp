#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sconce/amp/mixed_precision.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/devices.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/metrics/metric.hpp"
#include "sconce/training/batch.hpp"
#include "sconce/training/fit_result.hpp"
#include "sconce/training/model_steps.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Metrics by the names that their values have, such as "acc" for "train_acc" and "test_acc".
using Metrics = std::vector<std::pair<std::string, std::shared_ptr<metrics::Metric>>>;

/// What a Trainer does. The first three are d2l's; those that have a default there have the same.
struct TrainerOptions {
  int max_epochs = 1;            ///< at least 1
  int num_gpus = 0;              ///< 0 or 1; 1 on a machine without a GPU warns and uses the CPU
  double gradient_clip_val = 0;  ///< largest norm of all gradients that the optimizer steps, taken
                                 ///< together; 0 clips nothing
  Precision precision = Precision::fp32;
  int accumulate_grad_batches = 1;  ///< batches whose mean gradient makes one step; at least 1
  std::optional<torch::Device> device = {};  ///< a device by name, in the place of num_gpus
  /// Makes each step of a fit a replay of a CUDA graph, where `device` is a GPU; see
  /// `cuda::CapturedStep`. The optimizer's `is_capturable()` is to be true. Batches of another
  /// shape than the first, such as a smaller last one, run without the graph. Callbacks hear of
  /// `on_before_step` after the step. Schedules of the learning rate take effect, those of the
  /// momentum do not.
  bool graph = false;
  bool fast_dev_run = false;  ///< one epoch of one batch, also for testing: does the program run?
  int64_t save_every = 0;  ///< steps within an epoch after which callbacks save; 0: they do after
                           ///< each epoch only

  /// Of models without a `training_step`. Empty: cross entropy, over int64 targets but for those
  /// of -100.
  Loss loss = {};
  /// Besides the loss. None: with the loss above empty, the accuracy as "acc".
  std::optional<Metrics> metrics = {};

  /// The processes that train together, this one among them; metrics are those of all.
  distributed::ProcessGroup process_group = {};
};

/// The batches to fit and what goes along, which the caller keeps alive.
struct FitData {
  BatchLoader train;
  std::optional<BatchLoader> test = {};  ///< to test on after each epoch
  std::vector<TrainerCallback*> callbacks = {};
};

/// The mixed-precision training loop, that of d2l's `Trainer`.
/// A model is any module, holder or `std::shared_ptr` of a module. One that has a
/// `training_step(batch)` says itself what a step is: it returns the loss (0-dim, the mean over the
/// examples) or a `StepOutput`; a `validation_step(batch)`, or else the same, is what is tested.
/// For any other a step is `loss(forward(inputs...), target)`, of up to four inputs. Its batches
/// are of any type in which `nn::NestedTensors` finds tensors, cut by `inputs_and_target`. It may
/// be a `nn::DataParallel` of one, whose first device is the trainer's, or, in a process group of
/// several, must be a `nn::DistributedDataParallel` of one: then every rank makes the same calls,
/// each with its own rows (`data::DistributedSampler`) in as many batches as the others.
///
/// In a profile each step is a range "step", with "data", "forward", "backward" and "optimizer" in
/// it, and a test a range "test".
///
/// All else is done by callbacks. The loop reads nothing from the device within an epoch (but for
/// an optimizer that is not one of sconce's in fp16, and saves); at its end it reads the sums of
/// loss and metrics, and those of the test where there is one.
class Trainer {
  struct None {};

 public:
  /// @throw c10::Error if max_epochs or accumulate_grad_batches is below 1, num_gpus is not 0 or 1,
  /// gradient_clip_val is negative or not finite, save_every is negative, num_gpus and device are
  /// both given, the device is not there, a metric is null, the precision is tf32 and the device no
  /// GPU, or `graph` is set beside accumulate_grad_batches or a process group of several.
  explicit Trainer(TrainerOptions options = {});
  /// Makes `Trainer({})` a trainer without options. It would be ambiguous with a copy otherwise.
  explicit Trainer(std::initializer_list<None>) : Trainer() {}

  /// The device that models and batches are moved to.
  torch::Device device() const { return device_; }

  /// What scales the losses in fp16; disabled in the other precisions. Its state lasts from fit to
  /// fit.
  amp::GradScaler& scaler() { return precision_.scaler(); }

  /// Returns the batch on the trainer's device; a tensor that is there already is not copied.
  template <class T = data::Dataset>
  [[nodiscard]] T prepare_batch(T batch) const {
    Batch moved = std::move(batch);
    moved.to(device_);
    return moved.as<T>();
  }

  /// Moves the model to the trainer's device, in place: an optimizer that was built before keeps
  /// its parameters.
  void prepare_model(torch::nn::Module& model) const { model.to(device_); }

  /// Prepares the model, then trains it for max_epochs over `data.train`, whose order is that of
  /// the epoch's number from 0, and tests after each. An epoch's last step may be of fewer batches.
  /// Leaves the model on the device, in training mode.
  /// @throw c10::Error if `data.train` or `data.test` has no batches; if two callbacks have the
  /// same name; in a process group of several if the model is no DistributedDataParallel, or one
  /// that is not on the trainer's device, or if a rank has another number of training batches; with
  /// `graph` on a GPU if the optimizer is not capturable, or the step cannot be captured; else what
  /// the model, the loss, the metrics and the callbacks throw.
  template <class M>
  FitResult fit(M& model, torch::optim::Optimizer& optimizer, const FitData& data) {
    return fit_model(steps_of(model, loss_), optimizer, data);
  }

  /// Trains the model, which is on the device already, once over the batches, in their order, and
  /// leaves it in training mode. Returns epoch 1. For a loop of one's own: no callbacks, no saves.
  /// @throw c10::Error as `fit`.
  template <class M>
  EpochMetrics fit_epoch(M& model, torch::optim::Optimizer& optimizer, const BatchLoader& train) {
    return fit_model_epoch(steps_of(model, loss_), optimizer, train);
  }

  /// Returns the model's loss and metrics over the batches, as "loss", "acc" and so on; the model
  /// is on the device already. Runs in the trainer's precision, without gradients and in evaluation
  /// mode, and restores the mode of every module in the model. In a process group it is that of all
  /// ranks' batches, of which a rank may have none, and buffers become those of rank 0.
  /// @throw c10::Error if there are no batches; else what the model, the loss and the metrics
  /// throw.
  template <class M>
  MetricValues evaluate(M& model, const BatchLoader& batches) {
    return test_model(steps_of(model, loss_), batches);
  }

 private:
  class Epoch;      // what an epoch has come to so far
  class GraphStep;  // a step of batches of any type as a CUDA graph

  using Callbacks = std::vector<TrainerCallback*>;
  using TrainStep = std::function<void(const BatchLoader::Next&)>;

  void check_fit(const ModelSteps& model, const BatchLoader& train, const char* who) const;
  Fit fit_of(const ModelSteps& model, torch::optim::Optimizer& optimizer, const BatchLoader& train);
  FitResult fit_model(const ModelSteps& model, torch::optim::Optimizer& optimizer,
                      const FitData& data);
  EpochMetrics fit_model_epoch(const ModelSteps& model, torch::optim::Optimizer& optimizer,
                               const BatchLoader& train);
  bool agree_to_stop(Fit& fit) const;
  bool pause(Fit& fit, const Callbacks& callbacks, bool is_time) const;
  bool train_epoch(const TrainStep& one_step, Fit& fit, const BatchLoader::Next& next,
                   const Callbacks& callbacks, Epoch& epoch);
  TrainStep step_of(const ModelSteps& model, Fit& fit, const Callbacks& callbacks, Epoch& epoch);
  void graph_step(GraphStep& graph, Fit& fit, const BatchLoader::Next& next,
                  const Callbacks& callbacks, Epoch& epoch);
  void train_step(const ModelSteps& model, Fit& fit, const BatchLoader::Next& next,
                  const Callbacks& callbacks, Epoch& epoch);
  StepOutput backward(const ModelSteps& model, const Batch& batch, int64_t of_step);
  void step(torch::optim::Optimizer& optimizer);
  void test_epoch(const ModelSteps& model, Fit& fit, const FitData& data);
  MetricValues test_model(const ModelSteps& model, const BatchLoader& batches);

  TrainerOptions options_;
  torch::Device device_;
  amp::MixedPrecision precision_;
  Loss loss_;
  Metrics metrics_;
};

}  // namespace sconce
