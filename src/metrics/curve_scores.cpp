#include "sconce/metrics/curve_scores.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "metrics/check_pair.hpp"
#include "metrics/labels.hpp"

namespace sconce::metrics {

namespace {

MultilabelCurveOptions single_label_options(const BinaryAUROCOptions& options) {
  return {.num_labels = 1,
          .average = Average::micro,
          .thresholds = options.thresholds,
          .ignore_index = options.ignore_index};
}

MultilabelCurveOptions per_class_options(const MulticlassCurveOptions& options,
                                         const char* caller) {
  TORCH_CHECK(options.num_classes >= 2, caller, ": expected num_classes to be at least 2, got ",
              options.num_classes);
  TORCH_CHECK(options.average != Average::micro, caller,
              ": expected average to be macro, weighted, or none, got micro");
  return {.num_labels = options.num_classes,
          .average = options.average,
          .thresholds = options.thresholds,
          .ignore_index = options.ignore_index};
}

MultilabelCurveOptions per_label_options(const MultilabelCurveOptions& options,
                                         const char* caller) {
  TORCH_CHECK(options.num_labels >= 2, caller, ": expected num_labels to be at least 2, got ",
              options.num_labels);
  return options;
}

double checked_rate(std::optional<double> max_fpr, const char* caller) {
  TORCH_CHECK(!max_fpr || (*max_fpr > 0 && *max_fpr <= 1), caller,
              ": expected max_fpr to be above 0 and at most 1, got ", *max_fpr);
  return max_fpr.value_or(1);
}

// Returns the thresholds in float32, like torchmetrics.
torch::Tensor tensor_of(const Thresholds& thresholds, const char* caller) {
  if (const auto* number = std::get_if<int64_t>(&thresholds)) {
    TORCH_CHECK(*number >= 2, caller,
                ": expected thresholds to be a list or an integer greater than 1, got ", *number);
    return at::linspace(0, 1, *number, at::kFloat);
  }
  const auto& list = std::get<std::vector<double>>(thresholds);
  const auto inside = [](double each) { return each >= 0 && each <= 1; };
  TORCH_CHECK(!list.empty() && std::all_of(list.begin(), list.end(), inside) &&
                  std::is_sorted(list.begin(), list.end()),
              caller, ": expected a list of thresholds from 0 to 1 in ascending order, got ",
              c10::ArrayRef<double>(list));
  return at::tensor(list, at::kFloat);
}

// Computes the area under y(x) up to x = end for each row. The x values must be in non-increasing
// order.
torch::Tensor area(const torch::Tensor& x, const torch::Tensor& y, double end) {
  const int64_t size = x.size(1) - 1;
  const auto left = x.narrow(1, 1, size), right = x.narrow(1, 0, size);
  const auto height = y.narrow(1, 1, size), rise = y.narrow(1, 0, size) - height;
  const auto width = (right.clamp_max(end) - left).clamp_min(0);
  return (width * (height + rise * share(width, right - left) / 2)).sum(1);
}

torch::Tensor roc_area(const torch::Tensor& fpr, const torch::Tensor& tpr, double max_fpr) {
  const auto whole = area(fpr, tpr, 1);
  if (max_fpr == 1) return whole;
  const double chance = max_fpr * max_fpr / 2;
  const auto scaled = 0.5 * (1 + (area(fpr, tpr, max_fpr) - chance) / (max_fpr - chance));
  const auto empty = fpr.sum(1).eq(0).logical_or_(tpr.sum(1).eq(0));
  return at::where(empty, whole, scaled);
}

torch::Tensor average_precision(const torch::Tensor& precision, const torch::Tensor& recall) {
  const auto next = at::cat(
      {recall.narrow(1, 1, recall.size(1) - 1), at::zeros({recall.size(0), 1}, recall.options())},
      1);
  return ((recall - next) * precision).sum(1);
}

}  // namespace

struct CurveScore::Batch {
  torch::Tensor scores;   // (rows, positions)
  torch::Tensor ones;     // mask of targets equal to 1
  torch::Tensor counted;  // mask of positions that are not ignored
  torch::Tensor wrong;    // 0-dim: whether any target is neither 0 nor 1
};

CurveScore::CurveScore(const char* name, Curve curve, const BinaryAUROCOptions& options)
    : CurveScore(name, curve, single_label_options(options), /*classes=*/false) {
  max_fpr_ = checked_rate(options.max_fpr, name);
}

CurveScore::CurveScore(const char* name, Curve curve, const MulticlassCurveOptions& options)
    : CurveScore(name, curve, per_class_options(options, name), /*classes=*/true) {}

CurveScore::CurveScore(const char* name, Curve curve, const MultilabelCurveOptions& options)
    : CurveScore(name, curve, per_label_options(options, name), /*classes=*/false) {}

CurveScore::CurveScore(const char* name, Curve curve, const MultilabelCurveOptions& options,
                       bool classes)
    : Metric(2 * rows(options) * (tensor_of(options.thresholds, name).numel() + 1)),
      name_(name),
      curve_(curve),
      classes_(classes),
      options_(options),
      thresholds_(tensor_of(options.thresholds, name)) {}

int64_t CurveScore::rows(const MultilabelCurveOptions& options) {
  return options.average == Average::micro ? 1 : options.num_labels;
}

CurveScore::Batch CurveScore::batch_of_classes(const torch::Tensor& preds,
                                               const torch::Tensor& target) const {
  const auto right = target.to(at::kLong).flatten();
  const auto classes = at::arange(options_.num_labels, right.options()).unsqueeze(1);
  auto counted = at::ones({options_.num_labels, right.numel()}, right.options().dtype(at::kBool));
  if (options_.ignore_index) counted.logical_and_(right.ne(*options_.ignore_index));
  const auto ones = right.eq(classes);
  const auto logits = preds.movedim(1, 0).flatten(1);
  return {.scores = probabilities(logits, counted, /*one_of=*/true),
          .ones = ones,
          .counted = counted,
          .wrong = ones.any(0).logical_or_(counted[0].logical_not()).all().logical_not_()};
}

CurveScore::Batch CurveScore::batch_of_labels(const torch::Tensor& preds,
                                              const torch::Tensor& target) const {
  const bool one = options_.num_labels == 1;
  auto [ones, zeros, wrong] = binary_targets(target, options_.ignore_index);
  const auto counted = ones.logical_or(zeros);
  const auto by_row = [this](const torch::Tensor& tensor) {
    return rows(options_) == 1 ? tensor.flatten().unsqueeze(0) : tensor.transpose(0, 1).flatten(1);
  };
  return {.scores = by_row(probabilities(preds, one ? counted : torch::Tensor())),
          .ones = by_row(ones),
          .counted = by_row(counted),
          .wrong = wrong};
}

void CurveScore::update(const torch::Tensor& preds, const torch::Tensor& target) {
  check(preds, target);
  const at::NoGradGuard no_grad;
  if (thresholds_.device() != preds.device()) thresholds_ = thresholds_.to(preds.device());
  const auto batch = classes_ ? batch_of_classes(preds, target) : batch_of_labels(preds, target);
  const auto reached =
      at::bucketize(batch.scores.contiguous(), thresholds_.to(batch.scores.scalar_type()),
                    /*out_int32=*/false, /*right=*/true)
          .masked_fill_(batch.scores.isnan(), 0);
  const int64_t bins = thresholds_.numel() + 1;
  const auto row = at::arange(rows(options_), reached.options()).unsqueeze(1);
  const auto bin =
      ((row * 2 + batch.ones) * bins + reached).masked_fill_(batch.counted.logical_not(), -1);
  add(nan_if(batch.wrong, count(bin.flatten(), 2 * rows(options_) * bins)));
}

void CurveScore::check(const torch::Tensor& preds, const torch::Tensor& target) const {
  check_tensors(preds, target, name_);
  const int64_t columns = options_.num_labels;
  TORCH_CHECK(preds.is_floating_point(), name_,
              ": expected floating-point probabilities or logits, got preds of ",
              preds.scalar_type());
  if (!classes_) {
    check_pair(preds, target, name_);
    TORCH_CHECK(preds.dim() > 0, name_, ": expected sizes (N, ...), got []");
    TORCH_CHECK(columns == 1 || (preds.dim() > 1 && preds.size(1) == columns), name_,
                ": expected sizes (N, ", columns, ", ...), got ", preds.sizes());
    return;
  }
  TORCH_CHECK(at::isIntegralType(target.scalar_type(), /*includeBool=*/true), name_,
              ": expected a target of integer classes (N, ...), got ", target.sizes(), " of ",
              target.scalar_type());
  TORCH_CHECK(target.dim() > 0 && preds.dim() == target.dim() + 1 && preds.size(1) == columns &&
                  preds.size(0) == target.size(0) &&
                  preds.sizes().slice(2) == target.sizes().slice(1),
              name_, ": expected preds (N, ", columns, ", ...) for a target (N, ...), got ",
              preds.sizes(), " for ", target.sizes());
}

torch::Tensor CurveScore::compute(const torch::Tensor& sums) const {
  const auto counts = sums.view({rows(options_), 2, -1});
  // Adds up the counts for each bin and all later bins. Each result is the number of scores that
  // reach the bin's threshold.
  const auto reaching = counts.flip(2).cumsum(2).flip(2);
  const auto all = reaching.select(2, 0);
  const auto ones = all.select(1, 1), zeros = all.select(1, 0);
  const auto at_thresholds = reaching.narrow(2, 1, reaching.size(2) - 1);
  const auto hits = at_thresholds.select(1, 1), false_ones = at_thresholds.select(1, 0);
  const auto recall = share(hits, ones.unsqueeze(1));
  const auto areas = curve_ == Curve::roc
                         ? roc_area(share(false_ones, zeros.unsqueeze(1)), recall, max_fpr_)
                         : average_precision(share(hits, hits + false_ones), recall);
  switch (options_.average) {
    case Average::micro:
      return areas.select(0, 0);
    case Average::macro:
      return areas.mean();
    case Average::weighted:
      return share((areas * ones).sum(), ones.sum());
    case Average::none:
      break;
  }
  return areas;
}

}  // namespace sconce::metrics
