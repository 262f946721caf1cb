#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "sconce/fwd.hpp"

namespace sconce {
class RunScope;  // in src/
}  // namespace sconce

namespace sconce::metrics {

/// A value over many batches that is computed from sums. The sums stay on the device of the
/// batches, so that nothing is read before the value is. A metric of your own derives from this
/// class: `update` adds a batch to the sums, `compute` makes the value from them, and `using
/// Metric::compute;` makes the value of its own sums available. A copy has sums of its own. A
/// captured step may update a metric: its replays add to the sums.
/// Python: `torchmetrics.Metric`, with states that are summed over processes.
class Metric {
 public:
  virtual ~Metric() = default;

  /// Adds a batch: the outputs of the model and the targets. The host reads nothing.
  virtual void update(const torch::Tensor& preds, const torch::Tensor& target) = 0;

  /// Returns the value for given sums, on their device. They can be the sums of all ranks or of a
  /// checkpoint.
  virtual torch::Tensor compute(const torch::Tensor& sums) const = 0;

  /// Returns whether a higher value is better, or nothing, the default, if neither direction is.
  /// Callbacks that look for the best value use it. Python: `Metric.higher_is_better`.
  virtual std::optional<bool> higher_is_better() const { return {}; }

  /// Returns the value of this metric's own sums. Python: `Metric.compute`.
  torch::Tensor compute() const { return compute(sums_); }

  /// Sets the sums to 0. They stay on their device. Python: `Metric.reset`.
  void reset();

  /// Returns the sums: float64 `(size,)`, on the device of the last batch, or on the CPU before the
  /// first batch. The tensor does not change later: each batch makes a new one.
  torch::Tensor sums() const;

  /// Replaces the sums by a copy of others. The next batch moves them to its device.
  /// @throw c10::Error if their number is not this metric's.
  void set_sums(const torch::Tensor& sums);

 protected:
  /// Makes a metric of `size` sums, all 0.
  /// @throw c10::Error if size is below 1.
  explicit Metric(int64_t size);
  Metric(const Metric& other);
  Metric& operator=(const Metric& other);

  /// Adds the values of a batch to the sums: a tensor of `size` numbers of any type. Gradients are
  /// not followed.
  /// @throw c10::Error if the tensor has another size.
  void add(const torch::Tensor& batch_sums);

 private:
  friend class sconce::RunScope;

  torch::Tensor sums_;
  bool is_captured_ = false;  // a captured step adds to the sums in place
  int runs_ = 0;              // number of fits and evaluations under way that use this object
};

}  // namespace sconce::metrics
