#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "sconce/distributed/process_group.hpp"
#include "sconce/stopwatch.hpp"
#include "sconce/training/fit_result.hpp"
#include "sconce/training/metrics.hpp"
#include "sconce/training/step_output.hpp"

namespace sconce {

/// Sums of the loss and the metrics over the finished batches of an epoch. They stay on the device
/// until its end.
class EpochSums {
 public:
  /// The metrics must outlive the sums.
  EpochSums(torch::Device device, const Metrics& metrics);

  /// Sets the sums to 0, unless the epoch continues from `batch`.
  void begin(int64_t batch = 0);

  /// Adds the output of a batch that has this number of examples.
  void add(const StepOutput& step, int64_t examples);

  int64_t examples() const { return examples_; }
  double seconds() const { return seconds_before_ + stopwatch_.seconds(); }

  struct Values {
    double loss;
    MetricValues metrics;
  };

  /// Returns the loss and the metrics that are one number, over all ranks. This is the only read
  /// from the device. Afterwards the metrics hold the sums of all ranks.
  Values values(const distributed::ProcessGroup& group, const std::string& prefix);

  /// Returns the sums of each rank, (ranks, n), or (ranks, 0) where an epoch has not begun.
  at::Tensor all_sums(const distributed::ProcessGroup& group, bool has_begun) const;
  /// Continues from this rank's row of `all_sums`, and the time of the epoch until then.
  void load(const at::Tensor& all_sums, int rank, double seconds);

 private:
  // Returns the sums of this process on the device: loss, examples, then those of the metrics.
  torch::Tensor sums() const;
  // Takes sums on the CPU, in the order of `sums()`.
  void set_examples_and_metrics(const torch::Tensor& sums);

  torch::Tensor loss_;  // (1,), the sum of loss times examples
  int64_t examples_ = 0;
  const Metrics& metrics_;
  double seconds_before_ = 0;  // time of the epoch in earlier processes
  Stopwatch stopwatch_;
};

}  // namespace sconce
