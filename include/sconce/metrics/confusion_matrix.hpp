#pragma once

#include <cstdint>
#include <optional>

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// Options of `ConfusionMatrix`, with torchmetrics' names.
struct ConfusionMatrixOptions {
  int64_t num_classes = 0;                   ///< number of classes, 2 or more
  std::optional<int64_t> ignore_index = {};  ///< target whose positions are ignored
};

/// Counts the answers for each class: int64 `(num_classes, num_classes)`, with a row for each
/// target and a column for each answer. `update` takes the same tensors as `ClassScore`. A position
/// whose answer or target is not a class is not counted.
/// Python: `torchmetrics.ConfusionMatrix(task="multiclass")`.
class ConfusionMatrix : public Metric {
 public:
  /// @throw c10::Error if num_classes is below 2.
  explicit ConfusionMatrix(ConfusionMatrixOptions options);
  /// Adds a batch.
  /// @throw c10::Error as `ClassScore` does.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the matrix for sums of this layout: the cells, row by row.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;

 private:
  ConfusionMatrixOptions options_;
};

}  // namespace sconce::metrics
