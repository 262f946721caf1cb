#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <string>

#include "sconce/amp/mixed_precision.hpp"
#include "sconce/training/any_batches.hpp"
#include "sconce/training/detail/model_steps.hpp"
#include "sconce/training/step_output.hpp"
#include "sconce/training/trainer_options.hpp"

namespace sconce {

/// A step of the optimizer in parts, which the loop calls in this order.
class TrainStep {
 public:
  virtual ~TrainStep() = default;

  virtual void zero_grad() = 0;
  /// Adds the gradients of one of the step's `of_step` batches, which is on the device. Returns the
  /// output of the batch with a detached loss.
  virtual StepOutput backward(AnyBatch batch, int64_t of_step) = 0;
  /// Clips the gradients and steps the optimizer.
  virtual void update() = 0;
  /// Returns whether the step is compiled and why, or an empty text if there is no compiler.
  virtual std::string mode() const { return {}; }
};

/// Returns the step of a fit. With `graph` it is a captured step: `backward`
/// then does all parts. It is used as long as the other arguments exist. `earlier` is the step of
/// an earlier loop on the same device, or null. If it is captured, it is returned for these
/// arguments, and keeps the capture if they are the same objects.
/// @throw c10::Error with `graph` if the optimizer is not capturable.
std::shared_ptr<TrainStep> make_train_step(const TrainerOptions& options,
                                           amp::MixedPrecision& precision,
                                           const detail::ModelSteps& model,
                                           torch::optim::Optimizer& optimizer,
                                           const std::shared_ptr<TrainStep>& earlier = nullptr);

/// Returns the loss over what the step counts, which is the loss itself without a count.
torch::Tensor mean_loss(const StepOutput& step);

/// Returns the option that captures the steps, for messages: `compile` implies `graph`.
const char* capturing_option(const TrainerOptions& options);

/// Checks that a parameter of the optimizer has a gradient, which is not so if it is another
/// model's. Reads nothing from the device, and ends at the first gradient.
/// @throw c10::Error with the number of parameters that optimizer and model have in common.
void check_gradients(const torch::nn::Module& model, const torch::optim::Optimizer& optimizer);

}  // namespace sconce
