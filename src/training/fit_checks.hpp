#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>

#include "sconce/training/detail/model_steps.hpp"
#include "sconce/training/fit_data.hpp"
#include "sconce/training/trainer_options.hpp"

namespace sconce {

// The error messages of all functions in this file start with `caller`.

/// @throw c10::Error if `batches` is 0. `expected` is the name of the missing data, such as
/// "training data".
void check_batches(int64_t batches, const char* caller, const char* expected);

/// @throw c10::Error if a callback is null.
void check_callbacks(const Callbacks& callbacks, const char* caller);

/// @throw c10::Error if the options contain metrics and a step returns only a loss.
/// `without_output` is the name of the step if the step returns only a loss, and null otherwise.
void check_output(const TrainerOptions& options, const char* without_output, const char* caller);

/// @throw c10::Error if a DistributedDataParallel module uses a different process group than the
/// options, or is on a different device.
void check_wrapper(const TrainerOptions& options, const detail::ModelSteps& model,
                   const char* caller);

/// Checks the arguments of an evaluation or a prediction. In a process group with more than one
/// rank, either all ranks throw or none do. For a prediction, `without_output` is null.
/// @throw c10::Error under the same conditions as `check_wrapper` and `check_output`, or if:
/// - the data belongs to a single process, and the process group has more than one rank;
/// - ranks disagree on whether to test with the buffers of rank 0.
void check_evaluation(const TrainerOptions& options, const detail::ModelSteps& model,
                      const AnyBatches& batches, const char* without_output, const char* caller);

/// Checks the arguments of a fit. In a process group with more than one rank, either all ranks
/// throw or none do.
/// @throw c10::Error if:
/// - a callback is null;
/// - there are no training batches, or a test set contains no batches;
/// - a test set has no name, is named "train", or shares its name with another set, or there are
///   more than 63 sets;
/// - the options' process group has more than one rank, and the model is not a
///   DistributedDataParallel module in that group;
/// - a DistributedDataParallel module is not on the device in the options, or belongs to another
///   group;
/// - a step returns only a loss, and there are metrics;
/// - the optimizer is LBFGS;
/// - gradients are disabled, or a parameter was created where they cannot be enabled;
/// - in a process group with more than one rank, the data belongs to a single process, or ranks
///   differ in the number of training batches or epochs, in the batches per step, in the number or
///   names of test sets, or in whether they use a compiler.
void check_fit(const TrainerOptions& options, const detail::ModelSteps& model,
               const torch::optim::Optimizer& optimizer, const FitData& data, const char* caller);

}  // namespace sconce
