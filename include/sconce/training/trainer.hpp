#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/amp/mixed_precision.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/devices.hpp"
#include "sconce/training/any_batches.hpp"
#include "sconce/training/detail/mistakes.hpp"
#include "sconce/training/detail/own_step.hpp"  // here, since compilers show how it was included
#include "sconce/training/detail/steps_of.hpp"
#include "sconce/training/fit_data.hpp"
#include "sconce/training/fit_result.hpp"
#include "sconce/training/loss.hpp"
#include "sconce/training/step_output.hpp"
#include "sconce/training/trainer_options.hpp"

namespace sconce {

class TrainStep;  // in src/

/// A training loop with mixed precision. Python: d2l's `Trainer`.
///
/// A model is a module, a module holder or a `std::shared_ptr` of a module.
/// - If it has a `training_step(batch)`, this is its step. It returns the loss (0-dim, the mean
///   over the examples) or a `StepOutput`. A test calls `validation_step(batch)` if the model has
///   it, else `test_step(batch)`, else `training_step`. Each of them, and `predict_step`, may have
///   Lightning's second argument `batch_idx`, an integer: the number of the batch in its epoch.
/// - For any other model a step is `loss(forward(inputs...), target)`, with up to four inputs.
///   `inputs_and_target` cuts the batch into these.
/// - It may be wrapped in `nn::DataParallel`, whose first device must be the trainer's. In a
///   process group of several it must be wrapped in `nn::DistributedDataParallel`. Every rank then
///   makes the same calls with rows of its own (`data::DistributedSampler`) in the same number of
///   batches.
///
/// Batches may have any type in which `nn::TensorTree` finds tensors.
///
/// In a profile each step is a range "step", with the ranges "data", "forward", "backward" and
/// "optimizer" inside, each test is a range "test", and each prediction a range "predict".
///
/// Afterwards the metrics have the sums of what ran last, for the caller to read. What runs within
/// a fit, such as an `evaluate` or another fit in a callback, puts the sums of the metrics back
/// that it shares with the fit, also if it throws. A fit of the same Trainer puts the scale back
/// too.
///
/// Callbacks do everything else. The loop reads nothing from the device within an epoch, except for
/// saves and, in fp16, for optimizers without fused kernels. At the end of an epoch it reads the
/// sums of the loss and the metrics, and those of the test.
class Trainer {
 public:
  /// @throw c10::Error if:
  /// - max_epochs or accumulate_grad_batches is below 1, or num_gpus is not 0 or 1;
  /// - max_time is not above 0;
  /// - gradient_clip_val is negative or not finite;
  /// - num_gpus and device are both given, or this machine does not have the device;
  /// - a metric is null, two have the same name, or one is called "loss";
  /// - the precision is tf32 and the device is not a GPU;
  /// - `graph` or `compiler` is set and accumulate_grad_batches is above 1;
  /// - `graph` is set, the device is a GPU, and the process group has several;
  /// - `compiler` is set and the device is not the CPU.
  explicit Trainer(TrainerOptions options = {});
  /// Does not compile: the braces contain something that `TrainerOptions` lacks.
  template <std::same_as<detail::MistakenTrainerOptions> Options = detail::MistakenTrainerOptions>
  explicit Trainer(const Options&) : Trainer() {
    static_assert(!std::same_as<Options, Options>,
                  "sconce::Trainer: expected the members of sconce::TrainerOptions in their order");
  }

  /// The device that models and batches are moved to.
  torch::Device device() const { return *options_.device; }

  /// The scaler of the losses. It is enabled in fp16 only, and keeps its state from fit to fit.
  amp::GradScaler& scaler() { return precision_.scaler(); }

  /// Returns the batch on the trainer's device. Tensors that are there already are not copied.
  template <class T = data::Dataset>
  [[nodiscard]] T prepare_batch(T batch) const {
    AnyBatch moved = std::move(batch);
    moved.to(device());
    return moved.as<T>();
  }

  /// Moves the model to the trainer's device, in place. An optimizer that has the parameters
  /// already stays valid.
  void prepare_model(torch::nn::Module& model) const { model.to(device()); }

  /// Moves the model to the trainer's device, trains it for max_epochs over `data.train`, and tests
  /// it after each epoch. The epoch's number, from 0, chooses the order of the batches; each test
  /// has the order of epoch 0. Neither counts as an epoch of a loop of your own over the same
  /// batches. The last step of an epoch may have fewer batches. The test takes the buffers of rank
  /// 0, as `evaluate` does. Leaves the model on the device, in training mode.
  /// @throw c10::Error if:
  /// - `data.train` or a set of `data.test` has no batches;
  /// - a test set has no name, the name "train" or the name of another set;
  /// - the model or a callback is null, or two callbacks have the same name;
  /// - the model is a DistributedDataParallel on another device or of another process group than
  ///   the trainer's, or is none in a process group of several;
  /// - ranks make different calls, or differ in the number of training batches, in `max_epochs` or
  ///   `accumulate_grad_batches`, in the test sets or in `compiler`, or one of them refuses its
  ///   arguments: all ranks throw;
  /// - there are metrics, and a step of the model returns a loss alone;
  /// - `graph` or `compiler` is set, and the optimizer is not capturable, has no fused kernels in
  ///   fp16, or the step cannot be captured, as with an argument `batch_idx` or with a
  ///   DistributedDataParallel with `find_unused_parameters`, `static_graph` or sparse gradients;
  /// - the optimizer is a `torch::optim::LBFGS`, gradients are turned off, or a parameter was made
  ///   within `c10::InferenceMode`;
  /// - a value of a step is undefined, has more than one element, is on another device than the
  ///   loss, or has the name of the loss, of a metric or of another value, or steps or ranks return
  ///   values of different names;
  /// - a loss is undefined, has more than one element or requires no gradient, or after the
  ///   backward passes of a step none of the optimizer's parameters has a gradient, as in an
  ///   optimizer of another model.
  /// @throw what the model, the loss, the metrics and the callbacks throw.
  template <class M>
  FitResult fit(M& model, torch::optim::Optimizer& optimizer, const FitData& data) {
    return fit_model(detail::steps_of(model, loss_), optimizer, data);
  }

  /// As above, for a list in braces, which clang 14 would otherwise take for a mistake.
  template <class M>
  FitResult fit(M& model, torch::optim::Optimizer& optimizer, FitData&& data) {
    return fit(model, optimizer, std::as_const(data));
  }

  /// Trains the model over the batches, without a test and callbacks, as above. A list in braces
  /// that `FitData` does not accept does not compile.
  /// @throw as above.
  template <class M, class Train = detail::MistakenFitData>
    requires(!std::same_as<std::remove_cvref_t<Train>, FitData>)
  FitResult fit(M& model, torch::optim::Optimizer& optimizer, Train&& train) {
    if constexpr (std::same_as<std::remove_cvref_t<Train>, detail::MistakenFitData>) {
      static_assert(!std::same_as<Train, Train>,
                    "sconce::Trainer::fit: expected the members of sconce::FitData in their order: "
                    "{.train = batches, .test = batches, .callbacks = {&callback}}");
      return {};
    } else {
      return fit_model(detail::steps_of(model, loss_), optimizer,
                       FitData{.train = std::forward<Train>(train)});
    }
  }

  /// Trains the model over the batches, and tests it after each epoch, as above.
  /// @throw as above.
  template <class M>
  FitResult fit(M& model, torch::optim::Optimizer& optimizer, AnyBatches train, AnyBatches test) {
    return fit(model, optimizer, FitData{.train = std::move(train), .test = std::move(test)});
  }

  /// Does not compile: the second argument is not an optimizer.
  template <class M, class Other, class Data = detail::MistakenFitData>
    requires(!std::derived_from<std::remove_cvref_t<Other>, torch::optim::Optimizer>)
  FitResult fit(M&, Other&&, Data&&) {
    static_assert(!std::same_as<Other, Other>,
                  "sconce::Trainer::fit: expected an optimizer as the second argument, got another "
                  "type; write *optimizer for a pointer");
    return {};
  }
  /// Does not compile: there is no optimizer.
  template <class M, class Data = detail::MistakenFitData>
    requires(!std::derived_from<std::remove_cvref_t<Data>, torch::optim::Optimizer>)
  FitResult fit(M&, Data&&) {
    static_assert(!std::same_as<Data, Data>,
                  "sconce::Trainer::fit: expected an optimizer as the second argument: "
                  "trainer.fit(model, optimizer, batches)");
    return {};
  }

  /// Trains the model, which must be on the device, over the next epoch of the batches (their
  /// `begin()`), and leaves it in training mode. Returns the metrics of epoch 1. It calls no
  /// callbacks and saves nothing: it is for a loop of your own. With `graph` on the CPU the capture
  /// is kept, with its gradients and memory, for the next call with the same model, optimizer and
  /// parameters. Rates, modes, shapes and tensors may change in between, but what else the host
  /// code of the model reads, such as a dropout's rate, is that of the capture. A model that no
  /// `std::shared_ptr` owns, and on a GPU any model, is captured anew in each call.
  /// @throw c10::Error as `fit`.
  template <class M>
  EpochMetrics fit_epoch(M& model, torch::optim::Optimizer& optimizer, const AnyBatches& train) {
    return fit_model_epoch(detail::steps_of(model, loss_), optimizer, train);
  }

  /// Returns the loss and the metrics of the model, which must be on the device, over the batches,
  /// as "loss", "acc" and so on. Runs in the trainer's precision, without gradients and in
  /// evaluation mode, and restores the mode of every module. In a process group the result covers
  /// the batches of all ranks; a rank may have none. Buffers become those of rank 0, unless the
  /// model is a DistributedDataParallel without `broadcast_buffers`. As a loop of your own does, it
  /// takes the next epoch of the batches.
  /// @throw c10::Error if there are no batches, the model is null, a loss is undefined or has more
  /// than one element, or the model is a DistributedDataParallel of another process group or on
  /// another device. In a process group of several all ranks throw, also if they make different
  /// calls.
  /// @throw what the model, the loss and the metrics throw.
  template <class M>
  MetricValues evaluate(M& model, const AnyBatches& batches) {
    return evaluate_model(detail::steps_of(model, loss_), batches);
  }

  /// Calls the function with the output of the model, which must be on the device, for each batch
  /// in order: what `predict_step(batch)` returns if the model has it, else `forward(inputs...)`.
  /// The output stays on its device, so the function can reduce it before a copy.
  ///
  /// Runs in the trainer's precision, without gradients and in evaluation mode, and restores the
  /// mode of every module. The function itself runs without autocast. In a process group each rank
  /// gets the outputs of its own batches, of which it may have none; buffers become those of rank 0
  /// as in `evaluate`. As a loop of your own does, it takes the next epoch of the batches, and
  /// changes nothing else of a fit before or after it.
  /// @throw c10::Error if there are no batches, the model or the function is null, the model cannot
  /// take the inputs, an output is undefined, or the model is a DistributedDataParallel of another
  /// process group or on another device. In a process group of several all ranks throw in the last
  /// case, and if they make different calls.
  /// @throw what the model and the function throw.
  template <class M>
  void predict(M& model, const AnyBatches& batches,
               const std::function<void(const torch::Tensor& output)>& use) {
    predict_model(detail::steps_of(model, loss_), batches, use);
  }

  /// Returns the outputs, one for each batch, on the CPU. Python: Lightning's `Trainer.predict`.
  /// @throw as above.
  template <class M>
  std::vector<torch::Tensor> predict(M& model, const AnyBatches& batches) {
    std::vector<torch::Tensor> outputs;
    predict(model, batches,
            [&](const torch::Tensor& output) { outputs.push_back(output.to(cpu())); });
    return outputs;
  }

 private:
  FitResult fit_model(const detail::ModelSteps& model, torch::optim::Optimizer& optimizer,
                      const FitData& data);
  EpochMetrics fit_model_epoch(const detail::ModelSteps& model, torch::optim::Optimizer& optimizer,
                               const AnyBatches& train);
  MetricValues evaluate_model(const detail::ModelSteps& model, const AnyBatches& batches);
  void predict_model(const detail::ModelSteps& model, const AnyBatches& batches,
                     const std::function<void(const torch::Tensor& output)>& use);

  TrainerOptions options_;  // with the device
  amp::MixedPrecision precision_;
  Loss loss_;
  std::shared_ptr<TrainStep> epoch_step_ = {};  // of the last fit_epoch, if it is captured
};

}  // namespace sconce
