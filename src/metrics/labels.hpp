#pragma once

#include <ATen/core/Tensor.h>

#include "sconce/metrics/classification.hpp"

namespace sconce::metrics {

/// The labels of a batch.
struct Labels {
  torch::Tensor preds;    ///< answers, int64 (positions,)
  torch::Tensor target;   ///< right answers, int64 (positions,)
  torch::Tensor ignored;  ///< mask of the ignored positions; undefined if there are none
};

/// Checks the options. Errors begin with `who`.
/// @throw c10::Error if num_classes is below 2, or missing for another average than micro, or if
/// top_k is not in [1, num_classes].
void check_options(const ClassificationOptions& options, const char* who);

/// Returns the labels for the arguments of `ClassScore::update`. With a top_k above 1 an answer is
/// the target if it is among the k largest logits, or else the largest one.
/// @throw c10::Error, beginning with `who`, like `ClassScore::update`.
Labels labels_of(const torch::Tensor& preds, const torch::Tensor& target,
                 const ClassificationOptions& options, const char* who);

/// Returns the number of labels of each class in [0, classes), float64 (classes,). Other labels are
/// not counted. `bincount` would read the largest label on the host.
torch::Tensor count(const torch::Tensor& labels, int64_t classes);

}  // namespace sconce::metrics
