#pragma once

#include "sconce/training/any_batches.hpp"
#include "sconce/training/test_sets.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// A fit's batches and callbacks. The caller must keep the callbacks alive.
struct FitData {
  AnyBatches train;          ///< batches to train on
  TestSets test = {};        ///< batches to evaluate after each epoch, such as validation data; may
                             ///< contain several named sets
  Callbacks callbacks = {};  ///< callbacks, which are called in this order
};

}  // namespace sconce
