#pragma once

#include <cstdint>
#include <optional>

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// What a ConfusionMatrix takes, with torchmetrics' names.
struct ConfusionMatrixOptions {
  int64_t num_classes = 0;                   ///< 2 or more
  std::optional<int64_t> ignore_index = {};  ///< positions with this target are left out
};

/// How often each class was taken for each: int64 (num_classes, num_classes), a row for each
/// target, a column for each answer. `update` takes what `ClassScore` takes; a position whose
/// answer or target is no class is in no cell. Python:
/// `torchmetrics.ConfusionMatrix(task="multiclass")`.
class ConfusionMatrix : public Metric {
 public:
  /// @throw c10::Error if num_classes is below 2.
  explicit ConfusionMatrix(ConfusionMatrixOptions options);
  /// Adds a batch.
  /// @throw c10::Error as `ClassScore`'s.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the matrix of such sums: its cells, row by row.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;

 private:
  ConfusionMatrixOptions options_;
};

}  // namespace sconce::metrics
