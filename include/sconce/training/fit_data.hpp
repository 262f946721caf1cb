#pragma once

#include <optional>

#include "sconce/training/any_batches.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// The batches and callbacks of a fit. The caller keeps the callbacks alive.
struct FitData {
  AnyBatches train;                     ///< batches to train on
  std::optional<AnyBatches> test = {};  ///< batches to evaluate after each epoch: validation data
  Callbacks callbacks = {};             ///< called in this order
};

}  // namespace sconce
