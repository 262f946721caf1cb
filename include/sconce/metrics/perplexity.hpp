#pragma once

#include <cstdint>
#include <optional>

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// Options for `Perplexity`, with the same names and defaults as in torchmetrics.
struct PerplexityOptions {
  std::optional<int64_t> ignore_index = {};  ///< target value whose positions are ignored
};

/// Computes a language model's perplexity: the exponential of the mean negative log probability of
/// the target tokens. `update` accepts floating-point logits of shape `(N, L, vocabulary)` in
/// `preds` and integer tokens of shape (N, L) in `target`.
///
/// The result is a 0-dim float64 tensor. The best possible value is 1. Until a token is added, the
/// result is NaN. 16-bit logits are converted to float32. Invalid target tokens do not cause an
/// error, because detecting them would require a device read. Instead, the value is NaN until the
/// next `reset`.
/// Python: `torchmetrics.text.Perplexity`.
class Perplexity : public Metric {
 public:
  explicit Perplexity(PerplexityOptions options = {}) : Metric(2), options_(options) {}
  /// Adds a batch.
  /// @throw c10::Error if a type, a size, or the device is invalid.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Computes the perplexity from `sums`, which contains the sum of negative log probabilities and
  /// the token count.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns false, because lower values are better. The best value is 1.
  std::optional<bool> higher_is_better() const override { return false; }

 private:
  PerplexityOptions options_;
};

}  // namespace sconce::metrics
