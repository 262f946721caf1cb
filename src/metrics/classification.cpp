#include "sconce/metrics/classification.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sum.h>
#include <c10/util/Exception.h>

#include "metrics/labels.hpp"

namespace sconce::metrics {

namespace {

// The micro average treats all classes as a single class.
int64_t scores(const ClassificationOptions& options) {
  return options.average == Average::micro ? 1 : *options.num_classes;
}

ClassificationOptions checked(const ClassificationOptions& options, const char* caller) {
  check_options(options, caller);
  return options;
}

}  // namespace

ClassScore::ClassScore(const char* name, Divisor divisor, ClassificationOptions options)
    : Metric(3 * scores(checked(options, name))),
      name_(name),
      divisor_(divisor),
      options_(options) {}

void ClassScore::update(const torch::Tensor& preds, const torch::Tensor& target) {
  const at::NoGradGuard no_grad;
  auto [answers, right, ignored] = labels_of(preds, target, options_, name_);
  if (options_.average == Average::micro) {
    auto hits = answers.eq(right);
    // Predictions derived from logits are always valid classes, so the usual case does not need an
    // extra kernel.
    const bool are_logits = preds.dim() > target.dim();
    if (!are_logits) hits.masked_fill_(no_class(right, options_.num_classes), false);
    if (ignored.defined()) hits.masked_fill_(ignored, false);
    // Writes the sum directly to its destination, which saves a few calls for small models.
    auto all = at::full({3}, right.numel(), hits.options().dtype(at::kDouble));
    if (ignored.defined()) all -= ignored.sum(at::kDouble);
    auto hit = all.select(0, 0);
    at::sum_out(hit, hits, at::IntArrayRef(), /*keepdim=*/false, at::kDouble);
    add(all);
    return;
  }
  if (ignored.defined()) {
    answers = answers.masked_fill(ignored, -1);
    right = right.masked_fill(ignored, -1);
  }
  const auto hits = right.masked_fill(answers.ne(right), -1);
  const int64_t classes = *options_.num_classes;
  add(at::cat({count(hits, classes), count(answers, classes), count(right, classes)}));
}

torch::Tensor ClassScore::compute(const torch::Tensor& sums) const {
  const auto parts = sums.view({3, scores(options_)}).unbind();
  const auto &hits = parts[0], &answers = parts[1], &targets = parts[2];
  const auto both = answers + targets;
  auto score = divisor_ == Divisor::answers   ? share(hits, answers)
               : divisor_ == Divisor::targets ? share(hits, targets)
                                              : share(2 * hits, both);
  if (options_.average == Average::none) return score;
  // With top_k above 1, torchmetrics excludes classes without targets from the mean, except for F1.
  const bool by_targets = options_.average == Average::weighted ||
                          (options_.top_k > 1 && divisor_ != Divisor::mean_of_both);
  auto weight = by_targets ? targets : both;
  if (options_.average != Average::weighted) weight = weight.ne(0).to(at::kDouble);
  return share((score * weight).sum(), weight.sum());
}

}  // namespace sconce::metrics
