#pragma once

#include <ATen/core/Tensor.h>

#include "sconce/metrics/classification.hpp"

namespace sconce::metrics {

/// The answers and the right ones of a batch, int64 (positions,) both, and which of them are left
/// out, which is undefined where none are.
struct Labels {
  torch::Tensor preds;
  torch::Tensor target;
  torch::Tensor ignored;
};

/// @throw c10::Error, beginning with `who`, if num_classes is below 2, or missing but for the micro
/// average, or top_k is not in [1, num_classes].
void check_options(const ClassificationOptions& options, const char* who);

/// Returns what `ClassScore` says of preds and target. With a top_k above 1 an answer is the target
/// if that is among the k largest, else the largest.
/// @throw c10::Error, beginning with `who`, if they are not as said there.
Labels labels_of(const torch::Tensor& preds, const torch::Tensor& target,
                 const ClassificationOptions& options, const char* who);

/// Returns how often each of [0, classes) is among the labels, float64 (classes,); others are not
/// counted. In place of `bincount`, which reads the largest on the host.
torch::Tensor count(const torch::Tensor& labels, int64_t classes);

}  // namespace sconce::metrics
