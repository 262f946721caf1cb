#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "sconce/fwd.hpp"
#include "sconce/nn/nested_tensors.hpp"

namespace sconce {

/// The result of a model's step on one batch.
struct StepOutput {
  torch::Tensor loss = {};    ///< 0-dim, the mean over the batch's examples
  torch::Tensor output = {};  ///< for the metrics, with `target`; undefined: metrics get nothing
  torch::Tensor target = {};  ///< for the metrics, with `output`
};

}  // namespace sconce

template <>
struct sconce::nn::NestedTensors<sconce::StepOutput>
    : sconce::nn::TensorMembers<&sconce::StepOutput::loss, &sconce::StepOutput::output,
                                &sconce::StepOutput::target> {};

namespace sconce {

/// A function that returns the loss of outputs and targets, 0-dim, the mean over the examples.
using Loss = std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& target)>;

}  // namespace sconce
