#include "metrics/labels.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <limits>

namespace sconce::metrics {

namespace {

void check_labels(const torch::Tensor& preds, const torch::Tensor& target,
                  const ClassificationOptions& options, const char* caller) {
  const bool logits = preds.dim() == target.dim() + 1;
  const auto rest = preds.sizes().slice(logits ? 2 : 1);
  TORCH_CHECK(preds.size(0) == target.size(0) && rest == target.sizes().slice(1), caller,
              ": expected logits (N, C, ...) or classes (N, ...) for a target (N, ...), got ",
              preds.sizes(), " for ", target.sizes());
  TORCH_CHECK(logits ? preds.is_floating_point()
                     : at::isIntegralType(preds.scalar_type(), /*includeBool=*/true),
              caller,
              ": expected logits (N, C, ...) to be floating point and classes (N, ...) to be "
              "integers, got preds ",
              preds.sizes(), " of ", preds.scalar_type(), " for a target ", target.sizes());
  if (!logits) {
    TORCH_CHECK(options.top_k == 1, caller, ": expected logits (N, C, ...) for a top_k of ",
                options.top_k, ", got classes ", preds.sizes());
    return;
  }
  TORCH_CHECK(preds.size(1) == options.num_classes.value_or(preds.size(1)), caller,
              ": expected logits of ", *options.num_classes, " classes, got ", preds.sizes());
  TORCH_CHECK(preds.size(1) >= options.top_k, caller, ": expected logits of at least ",
              options.top_k, " classes (the top_k), got ", preds.sizes());
}

// Returns the labels as a 1-dim int64 tensor. Skips calls that would have no effect but would
// noticeably slow down a small model's step.
torch::Tensor as_row(const torch::Tensor& labels) {
  const torch::Tensor row = labels.dim() == 1 ? labels : labels.flatten();
  return row.scalar_type() == at::kLong ? row : row.to(at::kLong);
}

}  // namespace

void check_options(const ClassificationOptions& options, const char* caller) {
  const auto classes = options.num_classes;
  TORCH_CHECK(classes || options.average == Average::micro, caller,
              ": expected num_classes, which can be omitted only for the micro average");
  TORCH_CHECK(classes.value_or(2) >= 2, caller, ": expected num_classes to be at least 2, got ",
              *classes);
  TORCH_CHECK(options.top_k >= 1 && options.top_k <= classes.value_or(options.top_k), caller,
              ": expected top_k to be from 1 to num_classes, got ", options.top_k);
}

Labels labels_of(const torch::Tensor& preds, const torch::Tensor& target,
                 const ClassificationOptions& options, const char* caller) {
  TORCH_CHECK(preds.defined() && target.defined(), caller,
              ": expected preds and target, got an undefined tensor");
  TORCH_CHECK(target.dim() > 0 && at::isIntegralType(target.scalar_type(), /*includeBool=*/true),
              caller, ": expected a target of integer classes (N, ...), got ", target.sizes(),
              " of ", target.scalar_type());
  TORCH_CHECK(preds.dim() == target.dim() || preds.dim() == target.dim() + 1, caller,
              ": expected logits (N, C, ...) or classes (N, ...) for a target (N, ...), got ",
              preds.sizes(), " for ", target.sizes());
  TORCH_CHECK(preds.device() == target.device(), caller,
              ": expected preds and target on the same device, got ", preds.device(), " and ",
              target.device());
  check_labels(preds, target, options, caller);

  const torch::Tensor right = as_row(target);
  torch::Tensor answers = preds;
  if (options.top_k > 1) {
    const auto largest = std::get<1>(preds.topk(options.top_k, 1));
    const auto found = largest.eq(target.unsqueeze(1)).any(1);
    answers = at::where(found, target, largest.select(1, 0));
  } else if (preds.dim() > target.dim()) {
    answers = preds.argmax(1);
  }
  return {.preds = as_row(answers),
          .target = right,
          .ignored = options.ignore_index ? right.eq(*options.ignore_index) : torch::Tensor()};
}

BinaryTargets binary_targets(const torch::Tensor& target, std::optional<int64_t> ignore_index) {
  auto ones = target.eq(1), zeros = target.eq(0);
  auto known = ones.logical_or(zeros);
  if (ignore_index) {
    // uint8 tensors cannot be compared with -1.
    const auto ignored =
        (target.is_floating_point() ? target : target.to(at::kLong)).eq(*ignore_index);
    known.logical_or_(ignored);
    ones.masked_fill_(ignored, false);
    zeros.masked_fill_(ignored, false);
  }
  return {.ones = ones, .zeros = zeros, .wrong = known.all().logical_not_()};
}

torch::Tensor probabilities(const torch::Tensor& preds, const torch::Tensor& judged, bool one_of) {
  const auto numbers = preds.to(c10::promoteTypes(preds.scalar_type(), at::kFloat));
  auto inside = numbers.ge(0).logical_and_(numbers.le(1));
  if (judged.defined()) inside.logical_or_(judged.logical_not());
  return at::where(inside.all(), numbers, one_of ? numbers.softmax(0) : numbers.sigmoid());
}

torch::Tensor nan_if(const torch::Tensor& wrong, const torch::Tensor& sums) {
  return sums.masked_fill(wrong, std::numeric_limits<double>::quiet_NaN());
}

torch::Tensor share(const torch::Tensor& sums, const torch::Tensor& divisor) {
  return (sums / divisor).masked_fill(divisor.eq(0), 0);
}

torch::Tensor no_class(const torch::Tensor& labels, std::optional<int64_t> classes) {
  auto mask = labels.lt(0);
  if (classes) mask.logical_or_(labels.ge(*classes));
  return mask;
}

torch::Tensor count(const torch::Tensor& labels, int64_t classes) {
  const auto bins = labels.masked_fill(no_class(labels, classes), classes);
  const auto one = at::ones({1}, labels.options().dtype(at::kDouble));
  return at::zeros({classes + 1}, one.options())
      .scatter_add_(0, bins, one.expand(bins.sizes()))
      .narrow(0, 0, classes);
}

}  // namespace sconce::metrics
