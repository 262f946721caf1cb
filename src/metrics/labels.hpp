#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

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

/// The targets of labels that are 0 or 1.
struct BinaryTargets {
  torch::Tensor ones;   ///< mask of the targets 1 that are not ignored
  torch::Tensor zeros;  ///< mask of the targets 0 that are not ignored
  torch::Tensor wrong;  ///< 0-dim: whether another target is not ignored
};

/// Returns the masks of a target, of its sizes.
BinaryTargets binary_targets(const torch::Tensor& target, std::optional<int64_t> ignore_index);

/// Returns numbers of floating point as probabilities, in float32 or wider: logits, if a number is
/// not in [0, 1], else themselves. The device decides. If `judged` is defined, only numbers in this
/// mask count. With `one_of` the rows are the logits of classes.
torch::Tensor probabilities(const torch::Tensor& preds, const torch::Tensor& judged = {},
                            bool one_of = false);

/// Returns sums, or nan for each of them if `wrong` is true. The device decides.
torch::Tensor nan_if(const torch::Tensor& wrong, const torch::Tensor& sums);

/// Returns sums / divisor, 0 where the divisor is 0.
torch::Tensor share(const torch::Tensor& sums, const torch::Tensor& divisor);

/// Returns the mask of the labels that are no class: those below 0 and, where the number of classes
/// is known, those not below it.
torch::Tensor no_class(const torch::Tensor& labels, std::optional<int64_t> classes);

/// Returns the number of labels of each class in [0, classes), float64 (classes,). Other labels are
/// not counted. `bincount` would read the largest label on the host.
torch::Tensor count(const torch::Tensor& labels, int64_t classes);

}  // namespace sconce::metrics
