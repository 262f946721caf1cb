#pragma once

#include <cstdint>
#include <optional>

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// Options for `ConfusionMatrix`, with the same names as in torchmetrics.
struct ConfusionMatrixOptions {
  int64_t num_classes = 0;                   ///< number of classes, 2 or more
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Counts how often each class is predicted for each target class. The result is an int64 tensor of
/// shape `(num_classes, num_classes)`, with one row per target class and one column per predicted
/// class. `update` accepts the same tensors as `ClassScore`. Positions with an invalid prediction
/// or target class are not counted. Python: `torchmetrics.ConfusionMatrix(task="multiclass")`.
class ConfusionMatrix : public Metric {
 public:
  /// @throw c10::Error if `num_classes` is below 2.
  explicit ConfusionMatrix(ConfusionMatrixOptions options);
  /// Adds a batch.
  /// @throw c10::Error under the same conditions as `ClassScore`.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the matrix whose entries are stored in `sums` in row-major order.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;

 private:
  ConfusionMatrixOptions options_;
};

}  // namespace sconce::metrics
