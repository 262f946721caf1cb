#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <optional>

#include "sconce/distributed/process_group.hpp"
#include "sconce/training/any_batch.hpp"
#include "sconce/training/step_output.hpp"

namespace sconce::detail {

/// A model's module, and the functions that run the model's steps on a batch. The Trainer's loop
/// uses this struct instead of the model, so that the loop is compiled only once instead of once
/// per model.
struct ModelSteps {
  using Step = std::function<StepOutput(const AnyBatch&)>;        ///< runs a step on a batch
  using Predict = std::function<torch::Tensor(const AnyBatch&)>;  ///< returns the output for a
                                                                  ///< batch

  torch::nn::Module& module;  ///< the module with the parameters to train
  Step train = {};            ///< the training step
  Step test = {};             ///< the test step
  Predict predict = {};       ///< the prediction step
  /// Function that disables gradient averaging for the lifetime of the object that it returns.
  /// Empty unless the model is a DistributedDataParallel.
  std::function<std::shared_ptr<void>()> no_sync = {};
  /// The process group, if the model is a DistributedDataParallel.
  std::optional<distributed::ProcessGroup> group = {};
  bool broadcast_buffers = true;  ///< whether all ranks test with the buffers of rank 0
  /// Name of the training step if it returns a loss without the output and target that metrics
  /// require. Otherwise, null.
  const char* train_without_output = nullptr;
  const char* test_without_output = nullptr;
  /// Whether steps may produce values or counts, either because a step returns a StepOutput or
  /// because the loss function returns counts.
  bool may_have_values = false;
  bool train_takes_index = false;  ///< whether the training step accepts the batch index
};

}  // namespace sconce::detail
