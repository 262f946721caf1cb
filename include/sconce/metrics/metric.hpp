#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "sconce/fwd.hpp"

namespace sconce {
class RunScope;  // in src/
}  // namespace sconce

namespace sconce::metrics {

/// Base class for metrics that are computed from sums over batches. The sums stay on the same
/// device as the batches, so no data is copied to the host until you read the value.
///
/// To write a custom metric, derive from this class and override two functions: `update` adds a
/// batch to the sums, and `compute` calculates the metric from the given sums. Add `using
/// Metric::compute;` to the derived class to keep the overload that uses the accumulated sums.
///
///     class MeanError : public metrics::Metric {
///      public:
///       MeanError() : Metric(2) {}
///       void update(const torch::Tensor& preds, const torch::Tensor& target) override {
///         const auto error = preds - target;
///         add(torch::stack({error.sum(), torch::ones_like(error).sum()}));
///       }
///       torch::Tensor compute(const torch::Tensor& sums) const override {
///         return sums[0] / sums[1];
///       }
///       using Metric::compute;
///     };
///
/// Copies of a metric do not share sums. A captured step can update a metric. Each replay then adds
/// to the sums.
/// Python: `torchmetrics.Metric`, with states that are summed across processes.
class Metric {
 public:
  virtual ~Metric() = default;

  /// Adds a batch of model outputs and targets to the sums. Does not copy data to the host.
  virtual void update(const torch::Tensor& preds, const torch::Tensor& target) = 0;

  /// Computes the metric's value from `sums`. The result is on the same device as `sums`. The sums
  /// may be totals over all ranks or values loaded from a checkpoint.
  virtual torch::Tensor compute(const torch::Tensor& sums) const = 0;

  /// Returns whether a higher value is better. Returns `std::nullopt` by default, which means that
  /// neither direction is better. Callbacks that track the best value call this function.
  /// Python: `Metric.higher_is_better`.
  virtual std::optional<bool> higher_is_better() const { return {}; }

  /// Computes the metric's value from the sums that it has accumulated.
  /// Python: `Metric.compute`.
  torch::Tensor compute() const { return compute(sums_); }

  /// Resets the sums to 0. The sums stay on their current device.
  /// Python: `Metric.reset`.
  void reset();

  /// Returns the sums as a float64 tensor of shape `(size,)`. The tensor is on the last batch's
  /// device, or on the CPU if no batch has been added. Later batches do not change the returned
  /// tensor, because each batch creates a new tensor.
  torch::Tensor sums() const;

  /// Replaces the sums with a copy of `sums`. When the next batch is added, the sums move to that
  /// batch's device.
  /// @throw c10::Error if the number of sums does not match this metric.
  void set_sums(const torch::Tensor& sums);

 protected:
  /// Constructs a metric with `size` sums, which are initialized to 0.
  /// @throw c10::Error if `size` is below 1.
  explicit Metric(int64_t size);
  Metric(const Metric& other);
  Metric& operator=(const Metric& other);

  /// Adds a batch's values to the sums. `batch_sums` contains `size` values of any numeric type.
  /// Gradients are not tracked.
  /// @throw c10::Error if `batch_sums` has a different size.
  void add(const torch::Tensor& batch_sums);

 private:
  friend class sconce::RunScope;

  torch::Tensor sums_;
  bool is_captured_ = false;  // whether a captured step adds to the sums in place
  int runs_ = 0;              // number of fits and evaluations in progress that use this object
};

}  // namespace sconce::metrics
