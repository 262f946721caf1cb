#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "sconce/metrics/classification.hpp"

namespace sconce::metrics {

/// The predicted and correct labels of a batch.
struct Labels {
  torch::Tensor preds;    ///< predictions, int64 (positions,)
  torch::Tensor target;   ///< correct labels, int64 (positions,)
  torch::Tensor ignored;  ///< mask of ignored positions; undefined if there are none
};

/// Checks the options. Error messages start with `caller`.
/// @throw c10::Error if num_classes is below 2, if it is missing for an average other than micro,
/// or if top_k is not in [1, num_classes].
void check_options(const ClassificationOptions& options, const char* caller);

/// Returns the labels for the arguments of `ClassScore::update`. With top_k above 1, the target is
/// used as the prediction if it is among the classes with the k largest logits. Otherwise, the
/// prediction is the class with the largest logit.
/// @throw c10::Error with the prefix `caller` under the same conditions as `ClassScore::update`.
Labels labels_of(const torch::Tensor& preds, const torch::Tensor& target,
                 const ClassificationOptions& options, const char* caller);

/// The targets of binary labels.
struct BinaryTargets {
  torch::Tensor ones;   ///< mask of targets equal to 1 that are not ignored
  torch::Tensor zeros;  ///< mask of targets equal to 0 that are not ignored
  torch::Tensor wrong;  ///< 0-dim: whether any other target is not ignored
};

/// Returns masks with the same sizes as the target.
BinaryTargets binary_targets(const torch::Tensor& target, std::optional<int64_t> ignore_index);

/// Converts floating-point numbers to probabilities in float32 or a wider type. If any number is
/// outside [0, 1], all numbers are treated as logits. Otherwise, they are returned unchanged. The
/// check runs on the device. If `judged` is defined, only the numbers in this mask are checked.
/// With `one_of`, each row contains the logits of the classes.
torch::Tensor probabilities(const torch::Tensor& preds, const torch::Tensor& judged = {},
                            bool one_of = false);

/// Returns the sums, or replaces each sum with nan if `wrong` is true. The check runs on the
/// device.
torch::Tensor nan_if(const torch::Tensor& wrong, const torch::Tensor& sums);

/// Returns `sums / divisor`, or 0 where the divisor is 0.
torch::Tensor share(const torch::Tensor& sums, const torch::Tensor& divisor);

/// Returns the mask of labels that are not classes. These are negative labels and, if the number of
/// classes is known, labels that are greater than or equal to that number.
torch::Tensor no_class(const torch::Tensor& labels, std::optional<int64_t> classes);

/// Returns the number of labels for each class in [0, classes), as float64 (classes,). Other labels
/// are ignored. Does not use `bincount`, because it would read the largest label on the host.
torch::Tensor count(const torch::Tensor& labels, int64_t classes);

}  // namespace sconce::metrics
