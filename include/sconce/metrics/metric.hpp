#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sconce/fwd.hpp"

namespace sconce::metrics {

/// A figure over many batches, made of sums: what batches add up to, on the device where they are,
/// so nothing is read before the value is. A metric of one's own derives from this, says in
/// `update` what a batch adds and in `compute` what the sums come to, and has, to be asked
/// directly, `using Metric::compute;`. A copy goes on with sums of its own. Python:
/// `torchmetrics.Metric`, all of whose states are summed over processes.
class Metric {
 public:
  virtual ~Metric() = default;

  /// Adds a batch: what the model returned and what it should have been. The host reads no value.
  virtual void update(const torch::Tensor& preds, const torch::Tensor& target) = 0;

  /// Returns the value of such sums, on their device, wherever they come from: ranks add them, a
  /// checkpoint keeps them.
  virtual torch::Tensor compute(const torch::Tensor& sums) const = 0;

  /// Returns the value of this metric's own sums. Python: `Metric.compute`.
  torch::Tensor compute() const { return compute(sums_); }

  /// Forgets all batches; the sums stay on their device. Python: `Metric.reset`.
  void reset();

  /// Returns what the batches add up to: float64, (size,), on the last batch's device, before the
  /// first on the CPU. Nothing changes these tensors: each batch makes another one.
  const torch::Tensor& sums() const { return sums_; }

  /// Goes on from such sums, which are copied; the next batch takes them to its device.
  /// @throw c10::Error if they are not as many as this metric has.
  void set_sums(const torch::Tensor& sums);

 protected:
  /// Makes a metric of `size` sums, all 0.
  /// @throw c10::Error if size is below 1.
  explicit Metric(int64_t size);
  Metric(const Metric&) = default;
  Metric& operator=(const Metric&) = default;

  /// Adds what a batch comes to, a tensor of `size` numbers of any type, without gradients.
  /// @throw c10::Error if they are not as many.
  void add(const torch::Tensor& batch_sums);

 private:
  torch::Tensor sums_;
};

}  // namespace sconce::metrics
