#pragma once

#include <cstdint>
#include <optional>

#include "sconce/metrics/metric.hpp"

namespace sconce::metrics {

/// Options of `Perplexity`, with torchmetrics' names and defaults.
struct PerplexityOptions {
  std::optional<int64_t> ignore_index = {};  ///< target whose positions are ignored
};

/// e to the mean negative log probability that a language model gives the right tokens: float64,
/// 0-dim, 1 at best; nan before the first token. `update` takes preds, logits of floating point
/// `(N, L, vocabulary)`, and target, integers `(N, L)`. 16-bit logits are computed in float32. A
/// target that is no token gives no error, because finding it would read the device: it makes the
/// value nan until the next `reset`. Python: `torchmetrics.text.Perplexity`.
class Perplexity : public Metric {
 public:
  explicit Perplexity(PerplexityOptions options = {}) : Metric(2), options_(options) {}
  /// Adds a batch.
  /// @throw c10::Error if a type, a size or the device is wrong.
  void update(const torch::Tensor& preds, const torch::Tensor& target) override;
  /// Returns the value for sums of this layout: of the negative log probabilities, and the number
  /// of tokens.
  torch::Tensor compute(const torch::Tensor& sums) const override;
  using Metric::compute;
  /// Returns false: 1 is the best value.
  std::optional<bool> higher_is_better() const override { return false; }

 private:
  PerplexityOptions options_;
};

}  // namespace sconce::metrics
