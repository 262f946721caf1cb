#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sconce/fwd.hpp"
#include "sconce/nn/tensor_tree.hpp"

namespace sconce {

/// The result of a model's step on one batch.
struct StepOutput {
  torch::Tensor loss = {};    ///< 0-dim tensor with the mean over the batch's examples, or with the
                              ///< sum if `count` is defined
  torch::Tensor output = {};  ///< passed to the metrics with `target`; if undefined, metrics are
                              ///< not updated
  torch::Tensor target = {};  ///< passed to the metrics with `output`
  /// Values to average over the epoch, weighted by the number of examples in each batch: `{{"kl",
  /// kl}}` becomes "train_kl" and "test_kl". Each value is a one-element tensor on the loss's
  /// device and is read at the end of the epoch. All steps of a loop must return values with the
  /// same names.
  /// Python: Lightning's `self.log(name, value, on_epoch=True)`.
  std::vector<std::pair<std::string, torch::Tensor>> values = {};
  /// The number of tokens or examples over which `loss` is summed, at least 0, as a one-element
  /// tensor on the loss's device. If steps return counts, the gradient of a step over several
  /// batches, in one or more processes, is the gradient of the total loss divided by the total
  /// count. Likewise, the loss of an epoch is the total loss divided by the total count. Either all
  /// steps of a loop return a count on all ranks, or none of the steps return a count. If the count
  /// is undefined, the batches of a step have equal weight, and the batches of an epoch are
  /// weighted by their number of examples.
  /// Python: `num_items_in_batch` in Hugging Face's Trainer.
  torch::Tensor count = {};
};

/// A summed loss and the number of tokens or examples over which it is summed, for
/// `TrainerOptions::loss`. The Trainer stores these values in `StepOutput::loss` and
/// `StepOutput::count`.
struct LossSum {
  torch::Tensor sum = {};    ///< 0-dim tensor with the sum
  torch::Tensor count = {};  ///< number of tokens or examples, as a tensor with one element
};

}  // namespace sconce

/// Finds the tensors in all members. Both outputs must have values with the same names.
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
  /// Returns whether two outputs have the same value names and the same undefined tensors.
  static bool alike(const StepOutput& a, const StepOutput& b) {
    return a.loss.defined() == b.loss.defined() && a.output.defined() == b.output.defined() &&
           a.target.defined() == b.target.defined() && a.count.defined() == b.count.defined() &&
           std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                      [](const auto& x, const auto& y) { return x.first == y.first; });
  }
};
