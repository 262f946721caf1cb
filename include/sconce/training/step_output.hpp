#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sconce/fwd.hpp"
#include "sconce/nn/tensor_tree.hpp"

namespace sconce {

/// The result of a model's step on a single batch.
struct StepOutput {
  torch::Tensor loss = {};    ///< 0-dim tensor with the mean over the batch's examples, or with the
                              ///< sum if `count` is defined
  torch::Tensor output = {};  ///< passed to the metrics with `target`; if undefined, metrics are
                              ///< not updated
  torch::Tensor target = {};  ///< passed to the metrics with `output`
  /// Values to average over the epoch, weighted by the number of examples in each batch. For
  /// example, `{{"kl", kl}}` produces "train_kl" and "test_kl". Each value is a one-element tensor
  /// on the loss's device and is read at the end of the epoch. All steps in a loop must return the
  /// same value names.
  /// Python: Lightning's `self.log(name, value, on_epoch=True)`.
  std::vector<std::pair<std::string, torch::Tensor>> values = {};
  /// Number of tokens or examples summed in `loss`, at least 0, as a one-element tensor on the
  /// loss's device. If steps return counts, the gradient of a multi-batch or multi-process step is
  /// the gradient of the total loss divided by the total count. Likewise, an epoch's loss is the
  /// total loss divided by the total count. If a step in a loop returns a count, all steps on all
  /// ranks must return a count. If the count is undefined, batches are weighted equally within a
  /// step and by their number of examples within an epoch.
  /// Python: `num_items_in_batch` in Hugging Face's Trainer.
  torch::Tensor count = {};
};

/// A summed loss and the number of tokens or examples in the sum, as returned by a
/// `TrainerOptions::loss` function. The Trainer stores these values in `StepOutput::loss` and
/// `StepOutput::count`.
struct LossSum {
  torch::Tensor sum = {};    ///< 0-dim tensor with the sum
  torch::Tensor count = {};  ///< number of tokens or examples, as a tensor with one element
};

}  // namespace sconce

/// Finds the tensors in all members. Both outputs must have the same value names.
template <>
struct sconce::nn::TensorTree<sconce::StepOutput> {
  static constexpr bool any = true;   ///< the type contains tensors
  static constexpr bool only = true;  ///< apart from names, the type contains only tensors
  /// Calls `f` with the loss, the output, the target, the count, and each value.
  template <class Value, class F>
  static void for_each(Value& step, const F& f) {
    f(step.loss);
    f(step.output);
    f(step.target);
    f(step.count);
    for (auto& value : step.values) f(value.second);
  }
  /// Returns whether two outputs have the same value names and leave the same tensors undefined.
  static bool alike(const StepOutput& a, const StepOutput& b) {
    return a.loss.defined() == b.loss.defined() && a.output.defined() == b.output.defined() &&
           a.target.defined() == b.target.defined() && a.count.defined() == b.count.defined() &&
           std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                      [](const auto& x, const auto& y) { return x.first == y.first; });
  }
};
