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

/// An optimizer step, divided into parts. The loop calls them in this order.
class TrainStep {
 public:
  virtual ~TrainStep() = default;

  virtual void zero_grad() = 0;
  /// Computes and adds the gradients for one of the step's `batches_in_step` batches, which must be
  /// on the device. Returns the output for the batch with a detached loss.
  virtual StepOutput backward(AnyBatch batch, int64_t batches_in_step) = 0;
  /// Clips the gradients and runs the optimizer's step.
  virtual void update() = 0;
  /// Returns a description of whether and why the step is compiled, or an empty string if there is
  /// no compiler.
  virtual std::string mode() const { return {}; }
};

/// Returns the step for a fit. With `graph`, the result is a captured step, and `backward` runs all
/// parts. The other arguments must outlive the use of the step. `earlier` is the step from an
/// earlier loop on the same device, or null. If `earlier` is a captured step, this function updates
/// and returns it. The step keeps its capture if the arguments are the same objects.
/// @throw c10::Error if `graph` is set and the optimizer is not capturable.
std::shared_ptr<TrainStep> make_train_step(const TrainerOptions& options,
                                           amp::MixedPrecision& precision,
                                           const detail::ModelSteps& model,
                                           torch::optim::Optimizer& optimizer,
                                           const std::shared_ptr<TrainStep>& earlier = nullptr);

/// Returns the loss divided by the step's count, or the loss itself if there is no count.
torch::Tensor mean_loss(const StepOutput& step);

/// Returns the name of the option that captures the steps, for messages. `compiler` implies
/// `graph`.
const char* capturing_option(const TrainerOptions& options);

/// Checks that at least one of the optimizer's parameters has a gradient. The check fails if the
/// optimizer belongs to another model. Does not read from the device, and stops at the first
/// gradient.
/// @throw c10::Error with the number of parameters that the optimizer and the model share.
void check_gradients(const torch::nn::Module& model, const torch::optim::Optimizer& optimizer);

}  // namespace sconce
