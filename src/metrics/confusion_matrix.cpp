#include "sconce/metrics/confusion_matrix.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include "metrics/labels.hpp"

namespace sconce::metrics {

namespace {

constexpr auto confusion_matrix = "sconce::metrics::ConfusionMatrix";

ClassificationOptions by_class(const ConfusionMatrixOptions& options) {
  return {.num_classes = options.num_classes,
          .average = Average::none,
          .ignore_index = options.ignore_index};
}

int64_t cells(const ConfusionMatrixOptions& options) {
  check_options(by_class(options), confusion_matrix);
  return options.num_classes * options.num_classes;
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(ConfusionMatrixOptions options)
    : Metric(cells(options)), options_(options) {}

void ConfusionMatrix::update(const torch::Tensor& preds, const torch::Tensor& target) {
  const at::NoGradGuard no_grad;
  const auto labels = labels_of(preds, target, by_class(options_), confusion_matrix);
  const int64_t classes = options_.num_classes;
  auto no_cell = no_class(labels.preds, classes);
  if (labels.ignored.defined()) no_cell.logical_or_(labels.ignored);
  // A target that is not a valid class produces an invalid cell index, which `count` ignores.
  const auto cell = (labels.target * classes + labels.preds).masked_fill(no_cell, -1);
  add(count(cell, classes * classes));
}

torch::Tensor ConfusionMatrix::compute(const torch::Tensor& sums) const {
  return sums.view({options_.num_classes, options_.num_classes}).to(at::kLong);
}

}  // namespace sconce::metrics
