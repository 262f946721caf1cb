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
#include "sconce/training/detail/own_step.hpp"  // here because compilers show how it was included
#include "sconce/training/detail/steps_of.hpp"
#include "sconce/training/fit_data.hpp"
#include "sconce/training/fit_result.hpp"
#include "sconce/training/loss.hpp"
#include "sconce/training/step_output.hpp"
#include "sconce/training/trainer_options.hpp"

namespace sconce {

class TrainStep;  // in src/

/// Trains, evaluates, and runs models, optionally in mixed precision. Python: d2l's `Trainer`.
///
///     sconce::Trainer trainer({.max_epochs = 3});
///     const auto result = trainer.fit(model, optimizer, {.train = train, .test = test});
///
/// A model is a module, a module holder, or a `std::shared_ptr` to a module. Batches may have any
/// type in which `nn::TensorTree` finds tensors.
/// - If the model defines `training_step(batch)`, the Trainer calls it.
///   The step returns the loss (a 0-dim tensor with the mean over the examples) or a `StepOutput`.
///   A test calls the first of `validation_step`, `test_step`, and `training_step` that the model
///   defines. As in Lightning, these functions and `predict_step` may accept a second argument,
///   `batch_idx`, the batch's integer index within its epoch.
/// - For any other model, a step computes `loss(forward(inputs...), target)`, with up to four
///   inputs. `inputs_and_target` splits the batch into inputs and target.
/// - The model may be wrapped in `nn::DataParallel`, whose first device must be the Trainer's
///   device. In a multi-process group, the model must be wrapped in `nn::DistributedDataParallel`.
///   All ranks must then make the same calls with the same number of batches, but with different
///   rows (see `data::DistributedSampler`).
///
/// In a profile, each step appears as a "step" range that contains "data", "forward", "backward",
/// and "optimizer". Tests and predictions appear as "test" and "predict" ranges.
///
/// After a call, the metrics contain the sums of the last training epoch or test. Nested calls,
/// such as `evaluate` or `fit` in a callback, restore the sums of metrics shared with the outer
/// fit, even after an exception. A nested fit with the same Trainer also restores the loss scale.
///
/// Callbacks handle all other tasks, such as saving checkpoints. Within an epoch, the loop reads
/// from the device only to save a checkpoint and, in fp16, to step an optimizer without fused
/// kernels. At the end of an epoch, the loop reads the training and test sums.
class Trainer {
 public:
  /// @throw c10::Error if:
  /// - `max_epochs` or `accumulate_grad_batches` is below 1, or `num_gpus` is not 0 or 1;
  /// - `max_time` is not above 0;
  /// - `gradient_clip_val` is negative or not finite;
  /// - both `num_gpus` and `device` are given, or the device is not available on this machine;
  /// - a metric is null, two metrics have the same name, or a metric is called "loss";
  /// - the precision is tf32 and the device is not a GPU;
  /// - `graph` or `compiler` is set and `accumulate_grad_batches` is above 1;
  /// - `graph` is set, the device is a GPU, and the process group has more than one process;
  /// - `compiler` is set and the device is not the CPU.
  explicit Trainer(TrainerOptions options = {});
  /// Fails to compile, because the braces contain a value that does not match `TrainerOptions`.
  template <std::same_as<detail::MistakenTrainerOptions> Options = detail::MistakenTrainerOptions>
  explicit Trainer(const Options&) : Trainer() {
    static_assert(
        !std::same_as<Options, Options>,
        "sconce::Trainer: expected the members of sconce::TrainerOptions in declaration order");
  }

  /// Returns the device to which models and batches are moved.
  torch::Device device() const { return *options_.device; }

  /// Returns the loss scaler, which is enabled only in fp16 and keeps its state between fits.
  amp::GradScaler& scaler() { return precision_.scaler(); }

  /// Moves the batch to the Trainer's device. Tensors already on that device are not copied.
  template <class T = data::Dataset>
  [[nodiscard]] T prepare_batch(T batch) const {
    AnyBatch moved = std::move(batch);
    moved.to(device());
    return moved.as<T>();
  }

  /// Moves the model to the Trainer's device in place, so existing optimizers remain valid.
  void prepare_model(torch::nn::Module& model) const { model.to(device()); }

  /// Moves the model to the Trainer's device, trains it on `data.train` for `max_epochs`, and tests
  /// it after each epoch. The epoch number, starting at 0, determines the batch order. Tests always
  /// use epoch 0's batch order. A fit does not affect the epoch number in your own loops over the
  /// same batches. An epoch's last step may process fewer batches than earlier steps. As in
  /// `evaluate`, tests use rank 0's buffers. Leaves the model on the device and in training mode.
  /// @throw c10::Error if:
  /// - `data.train` or a set in `data.test` has no batches;
  /// - a test set has no name, is called "train", or has the same name as another set;
  /// - the model or a callback is null, or two callbacks have the same name;
  /// - the model is a DistributedDataParallel with a different device or process group than the
  ///   Trainer, or is not a DistributedDataParallel in a multi-process group;
  /// - ranks make different calls, differ in training batch counts, `max_epochs`, test sets,
  ///   `accumulate_grad_batches`, or `compiler`, or one rank rejects its arguments (all throw);
  /// - there are metrics, and a step of the model returns only a loss;
  /// - `graph` or `compiler` is set, and the optimizer is not capturable, has no fused kernels in
  ///   fp16, or the step cannot be captured, for example because it accepts `batch_idx` or uses a
  ///   DistributedDataParallel with `find_unused_parameters`, `static_graph`, or sparse gradients;
  /// - the optimizer is a `torch::optim::LBFGS`, gradients are disabled, or a parameter was created
  ///   in `c10::InferenceMode`;
  /// - a value of a step is undefined, has more than one element, is on a different device than the
  ///   loss, or has the name of the loss, a metric, or another value, or if steps or ranks return
  ///   values with different names;
  /// - a loss is undefined, has more than one element, or does not require grad;
  /// - no optimizer parameter has a gradient after backward, as with another model's optimizer.
  /// @throw any exception thrown by the model, the loss, the metrics, or the callbacks.
  template <class M>
  FitResult fit(M& model, torch::optim::Optimizer& optimizer, const FitData& data) {
    return fit_model(detail::steps_of(model, loss_), optimizer, data);
  }

  /// Overload for a braced list, which clang 14 would otherwise reject.
  template <class M>
  FitResult fit(M& model, torch::optim::Optimizer& optimizer, FitData&& data) {
    return fit(model, optimizer, std::as_const(data));
  }

  /// Trains the model on the given batches without running tests or callbacks. A braced list that
  /// does not match `FitData` fails to compile.
  /// @throw the same exceptions as above.
  template <class M, class Train = detail::MistakenFitData>
    requires(!std::same_as<std::remove_cvref_t<Train>, FitData>)
  FitResult fit(M& model, torch::optim::Optimizer& optimizer, Train&& train) {
    if constexpr (std::same_as<std::remove_cvref_t<Train>, detail::MistakenFitData>) {
      static_assert(
          !std::same_as<Train, Train>,
          "sconce::Trainer::fit: expected the members of sconce::FitData in declaration order: "
          "{.train = batches, .test = batches, .callbacks = {&callback}}");
      return {};
    } else {
      return fit_model(detail::steps_of(model, loss_), optimizer,
                       FitData{.train = std::forward<Train>(train)});
    }
  }

  /// Trains the model on the given batches and tests the model after each epoch.
  /// @throw the same exceptions as above.
  template <class M>
  FitResult fit(M& model, torch::optim::Optimizer& optimizer, AnyBatches train, AnyBatches test) {
    return fit(model, optimizer, FitData{.train = std::move(train), .test = std::move(test)});
  }

  /// Fails to compile, because the second argument is not an optimizer.
  template <class M, class Other, class Data = detail::MistakenFitData>
    requires(!std::derived_from<std::remove_cvref_t<Other>, torch::optim::Optimizer>)
  FitResult fit(M&, Other&&, Data&&) {
    static_assert(!std::same_as<Other, Other>,
                  "sconce::Trainer::fit: expected an optimizer as the second argument, got another "
                  "type; write *optimizer for a pointer");
    return {};
  }
  /// Fails to compile, because there is no optimizer.
  template <class M, class Data = detail::MistakenFitData>
    requires(!std::derived_from<std::remove_cvref_t<Data>, torch::optim::Optimizer>)
  FitResult fit(M&, Data&&) {
    static_assert(!std::same_as<Data, Data>,
                  "sconce::Trainer::fit: expected an optimizer as the second argument: "
                  "trainer.fit(model, optimizer, batches)");
    return {};
  }

  /// Trains the model on the batches' next epoch (`begin()`) and returns the metrics as epoch 1.
  /// The model must be on the Trainer's device and is left in training mode. Use this function in a
  /// custom loop. No callbacks run, and no checkpoints are saved. With `graph` enabled on the CPU,
  /// the capture, including its gradients and memory, is kept for the next call with the same
  /// model, optimizer, and parameters. Learning rates, modes, shapes, and tensors may change
  /// between calls, but other values read by host code, such as dropout rates, remain as captured.
  /// If the model is on a GPU or not owned by a `std::shared_ptr`, each call recaptures the step.
  /// @throw c10::Error under the same conditions as `fit`.
  template <class M>
  EpochMetrics fit_epoch(M& model, torch::optim::Optimizer& optimizer, const AnyBatches& train) {
    return fit_model_epoch(detail::steps_of(model, loss_), optimizer, train);
  }

  /// Tests the model on the batches and returns the values "loss", "acc", and so on. The model must
  /// be on the device. Runs in the Trainer's precision, in evaluation mode, and without gradients.
  /// Module modes are restored afterward. In a process group, the result covers all ranks. Some
  /// ranks may have no batches. Buffers are replaced with rank 0's unless the model is a
  /// DistributedDataParallel with `broadcast_buffers` disabled. Starts the batches' next epoch.
  /// @throw c10::Error, on all ranks of a process group, if:
  /// - there are no batches, the model is null, or a loss is not a defined one-element tensor;
  /// - ranks' calls differ, or a DistributedDataParallel has a different process group or device.
  /// @throw any exception thrown by the model, the loss, or the metrics.
  template <class M>
  MetricValues evaluate(M& model, const AnyBatches& batches) {
    return evaluate_model(detail::steps_of(model, loss_), batches);
  }

  /// Calls `use` with the model's output for each batch, in order. The output is the result of
  /// `predict_step(batch)` if defined, or of `forward(inputs...)` otherwise. The model must be on
  /// the device. The output stays on the device, so `use` can reduce it before copying it.
  ///
  /// Runs in the Trainer's precision, in evaluation mode, and without gradients. Module modes are
  /// restored afterward. `use` itself runs without autocast. In a process group, each rank receives
  /// only the outputs for its batches, if any. As in `evaluate`, the model's buffers are replaced.
  /// Like a custom loop, starts the batches' next epoch. The call has no other effect on fits.
  /// @throw c10::Error if:
  /// - there are no batches, or the model or `use` is null;
  /// - the model does not accept the inputs, or an output is undefined;
  /// - the model is a DistributedDataParallel with a different process group or device (all throw);
  /// - ranks make different calls (all throw).
  /// @throw any exception thrown by the model or `use`.
  template <class M>
  void predict(M& model, const AnyBatches& batches,
               const std::function<void(const torch::Tensor& output)>& use) {
    predict_model(detail::steps_of(model, loss_), batches, use);
  }

  /// Returns one output per batch. The outputs are on the CPU. Python: Lightning's
  /// `Trainer.predict`.
  /// @throw the same exceptions as above.
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

  TrainerOptions options_;  // `device` is always set
  amp::MixedPrecision precision_;
  Loss loss_;
  std::shared_ptr<TrainStep> epoch_step_ = {};  // captured step of the last fit_epoch, if any
};

}  // namespace sconce
