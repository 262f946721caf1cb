#include "sconce/metrics/label_scores.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include "metrics/check_pair.hpp"
#include "metrics/labels.hpp"

namespace sconce::metrics {

namespace {

// The micro average treats all labels as a single label.
int64_t rows(const MultilabelOptions& options) {
  return options.average == Average::micro ? 1 : options.num_labels;
}

MultilabelOptions single_label_options(const BinaryOptions& options) {
  return {.num_labels = 1,
          .threshold = options.threshold,
          .average = Average::micro,
          .ignore_index = options.ignore_index};
}

template <class Options>
Options checked(const Options& options, const char* caller) {
  TORCH_CHECK(options.threshold >= 0 && options.threshold <= 1, caller,
              ": expected threshold to be from 0 to 1, got ", options.threshold);
  if constexpr (requires { options.num_labels; }) {
    TORCH_CHECK(options.num_labels >= 2, caller, ": expected num_labels to be at least 2, got ",
                options.num_labels);
  }
  return options;
}

}  // namespace

LabelScore::LabelScore(const char* name, Score score, BinaryOptions options)
    : Metric(4),
      name_(name),
      score_(score),
      options_(single_label_options(checked(options, name))) {}

LabelScore::LabelScore(const char* name, Score score, MultilabelOptions options)
    : Metric(4 * rows(checked(options, name))), name_(name), score_(score), options_(options) {}

void LabelScore::update(const torch::Tensor& preds, const torch::Tensor& target) {
  check_pair(preds, target, name_);
  const int64_t labels = options_.num_labels;
  TORCH_CHECK(preds.dim() > 0, name_, ": expected sizes (N, ...), got []");
  TORCH_CHECK(labels == 1 || (preds.dim() > 1 && preds.size(1) == labels), name_,
              ": expected sizes (N, ", labels, ", ...), got ", preds.sizes());

  const at::NoGradGuard no_grad;
  const auto targets = binary_targets(target, options_.ignore_index);
  torch::Tensor answers, wrong = targets.wrong;
  if (preds.is_floating_point()) {
    answers = probabilities(preds).gt(options_.threshold);
  } else {
    answers = preds.eq(1);
    wrong = wrong.logical_or(preds.ne(answers).any());
  }
  const auto masks = at::stack({answers.logical_and(targets.ones),
                                answers.logical_and(targets.zeros), targets.ones, targets.zeros});
  const auto by_row =
      rows(options_) == 1 ? masks.flatten(1).unsqueeze(1) : masks.transpose(1, 2).flatten(2);
  add(nan_if(wrong, by_row.sum(2, /*keepdim=*/false, at::kDouble)));
}

torch::Tensor LabelScore::compute(const torch::Tensor& sums) const {
  const auto parts = sums.view({4, rows(options_)}).unbind();
  const auto &hits = parts[0], &false_ones = parts[1], &ones = parts[2], &zeros = parts[3];
  const auto score = [&] {
    switch (score_) {
      case Score::accuracy:
        return share(hits + zeros - false_ones, ones + zeros);
      case Score::precision:
        return share(hits, hits + false_ones);
      case Score::recall:
        return share(hits, ones);
      case Score::f1:
        break;
    }
    return share(2 * hits, hits + false_ones + ones);
  }();
  switch (options_.average) {
    case Average::micro:
      return score.select(0, 0);
    case Average::macro:
      return score.mean();
    case Average::weighted:
      return share((score * ones).sum(), ones.sum());
    case Average::none:
      break;
  }
  return score;
}

}  // namespace sconce::metrics
