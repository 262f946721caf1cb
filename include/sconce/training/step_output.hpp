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
  torch::Tensor loss = {};    ///< 0-dim, the mean over the batch's examples; with `count` the sum
  torch::Tensor output = {};  ///< for the metrics, with `target`; undefined: metrics get nothing
  torch::Tensor target = {};  ///< for the metrics, with `output`
  /// Values to average over the epoch, weighted by the examples of each batch:
  /// `{{"kl", kl}}` becomes "train_kl" and "test_kl". Each is a tensor of one element on the loss's
  /// device, which is read at the end of the epoch. All steps of a loop return the same names.
  /// Python: Lightning's `self.log(name, value, on_epoch=True)`.
  std::vector<std::pair<std::string, torch::Tensor>> values = {};
  /// The number of tokens or examples over which `loss` is the sum, at least 0, as a tensor of one
  /// element on the loss's device. A step of several batches, in one process or in several, then
  /// has the gradient of the sum of all losses divided by the sum of all counts, and the loss of an
  /// epoch is the same quotient. All steps of a loop return a count on all ranks, or none does.
  /// Undefined: batches have equal weights in a step, and are weighted by their examples in an
  /// epoch. Python: `num_items_in_batch` of Hugging Face's Trainer.
  torch::Tensor count = {};
};

/// A loss that is a sum, with the number of tokens or examples it is a sum over, for
/// `TrainerOptions::loss`. They become `StepOutput::loss` and `StepOutput::count`.
struct LossSum {
  torch::Tensor sum = {};    ///< 0-dim, the sum over what is counted
  torch::Tensor count = {};  ///< the number of tokens or examples, of one element
};

}  // namespace sconce

/// Finds the tensors of all members. The names of the values must be alike.
template <>
struct sconce::nn::TensorTree<sconce::StepOutput> {
  static constexpr bool any = true;   ///< it holds tensors
  static constexpr bool only = true;  ///< it holds nothing else but names
  /// Calls `f` with the loss, the output, the target, the count, and each of the values.
  template <class Value, class F>
  static void for_each(Value& step, const F& f) {
    f(step.loss);
    f(step.output);
    f(step.target);
    f(step.count);
    for (auto& value : step.values) f(value.second);
  }
  /// Returns whether two outputs have the same undefined tensors and names.
  static bool alike(const StepOutput& a, const StepOutput& b) {
    return a.loss.defined() == b.loss.defined() && a.output.defined() == b.output.defined() &&
           a.target.defined() == b.target.defined() && a.count.defined() == b.count.defined() &&
           std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                      [](const auto& x, const auto& y) { return x.first == y.first; });
  }
};
