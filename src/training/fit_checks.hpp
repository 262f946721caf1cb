#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>

#include "sconce/training/detail/model_steps.hpp"
#include "sconce/training/fit_data.hpp"
#include "sconce/training/trainer_options.hpp"

namespace sconce {

// The errors of these functions begin with `who`.

/// @throw c10::Error if `batches` is 0. It names what is missing: "training data".
void check_batches(int64_t batches, const char* who, const char* expected);

/// @throw c10::Error if a callback is null.
void check_callbacks(const Callbacks& callbacks, const char* who);

/// @throw c10::Error if the options have metrics and a step returns a loss alone. Its name is
/// `without_output`; null for any other step.
void check_output(const TrainerOptions& options, const char* without_output, const char* who);

/// @throw c10::Error if a DistributedDataParallel is of another process group than the options', or
/// on another device.
void check_wrapper(const TrainerOptions& options, const detail::ModelSteps& model, const char* who);

/// Checks what an evaluation or a prediction is given. In a process group of several either all
/// ranks throw or none. A prediction has no `without_output`.
/// @throw c10::Error as `check_wrapper` and `check_output`, or if:
/// - data are those of one process alone, in a process group of several;
/// - ranks differ in whether they test with the buffers of rank 0.
void check_evaluation(const TrainerOptions& options, const detail::ModelSteps& model,
                      const AnyBatches& batches, const char* without_output, const char* who);

/// Checks what a fit is given. In a process group of several either all ranks throw or none.
/// @throw c10::Error if:
/// - a callback is null;
/// - there are no batches to train on, or a test set without batches;
/// - a test set has no name, the name "train", or the name of another set, or there are more than
///   63 sets;
/// - the model is not a DistributedDataParallel of the options' process group, if that has several;
/// - a DistributedDataParallel is not on the device of the options, or is of another group;
/// - a step returns a loss alone, and there are metrics;
/// - the optimizer is an LBFGS;
/// - gradients are turned off, or a parameter was made where they cannot be turned on;
/// - in a process group of several, data are those of one process alone, or ranks differ: in the
///   number of training batches or epochs, in the batches of a step, in the number or the names of
///   test sets, or in having a compiler.
void check_fit(const TrainerOptions& options, const detail::ModelSteps& model,
               const torch::optim::Optimizer& optimizer, const FitData& data, const char* who);

}  // namespace sconce
