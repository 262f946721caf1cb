#pragma once

#include <cstdint>

#include "sconce/training/detail/model_steps.hpp"
#include "sconce/training/trainer.hpp"

namespace sconce {

// The errors of these functions begin with `who`.

/// @throw c10::Error if `batches` is 0. It names what is missing: "training data".
void check_batches(int64_t batches, const char* who, const char* expected);

/// @throw c10::Error if a callback is null.
void check_callbacks(const Callbacks& callbacks, const char* who);

/// @throw c10::Error if:
/// - there are no batches, or other ranks have another number of them;
/// - in a process group of several, the loader is of one process alone;
/// - in a process group of several, the model is not a DistributedDataParallel;
/// - a DistributedDataParallel is not on the device of the options.
void check_model_and_batches(const TrainerOptions& options, const detail::ModelSteps& model,
                             const AnyBatches& train, const char* who);

}  // namespace sconce
