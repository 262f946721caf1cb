#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sconce/distributed/process_group.hpp"
#include "sconce/stopwatch.hpp"
#include "sconce/training/fit_result.hpp"
#include "sconce/training/metrics.hpp"
#include "sconce/training/step_output.hpp"

namespace sconce {

/// Sums of the loss, the metrics and the values of the steps over the finished batches of an epoch.
/// They stay on the device until its end.
class EpochSums {
 public:
  /// The metrics must outlive the sums. Steps that cannot have values spare the ranks a collective.
  EpochSums(torch::Device device, const Metrics& metrics, bool may_have_values);

  /// Sets the sums to 0, unless the epoch continues from `batch`.
  void begin(int64_t batch = 0);

  /// Adds the output of a batch that has this number of examples.
  /// @throw c10::Error if the names of its values are not those of the steps before, or cannot be
  /// names of values.
  void add(const StepOutput& step, int64_t examples);

  /// Makes the names of the values known to all ranks, of which some may have had no batch. Later
  /// calls do nothing. Call it on all ranks before `all_sums`.
  /// @throw c10::Error if ranks have values of different names.
  void agree_on_names(const distributed::ProcessGroup& group);

  int64_t examples() const { return examples_; }
  double seconds() const { return seconds_before_ + stopwatch_.seconds(); }

  struct Values {
    double loss;
    MetricValues metrics;
  };

  /// Returns the loss, the metrics that are one number and the values, over all ranks. This is the
  /// only read from the device. Afterwards the metrics hold the sums of all ranks.
  Values values(const distributed::ProcessGroup& group, const std::string& prefix);

  /// Returns the sums of each rank, (ranks, n), or (ranks, 0) where an epoch has not begun.
  at::Tensor all_sums(const distributed::ProcessGroup& group, bool has_begun) const;
  /// Continues from this rank's row of `all_sums`, with the names of the values, and the time of
  /// the epoch until then.
  void load(const at::Tensor& all_sums, std::vector<std::string> names, int rank, double seconds);

  /// Returns the names of the values, the first of which stands for the count if there is one; none
  /// before the first step.
  std::vector<std::string> value_names() const {
    return names_.value_or(std::vector<std::string>());
  }

 private:
  bool is_counted() const;
  void set_names(std::vector<std::string> names);
  void add_values(const StepOutput& step, int64_t examples);
  // Returns the sums of this process on the device: loss, examples, then those of the metrics and
  // of the values.
  torch::Tensor sums() const;
  // Takes sums on the CPU, in the order of `sums()`.
  void set_examples_and_metrics(const torch::Tensor& sums);

  torch::Tensor loss_;  // (1,), the sum of loss times examples, or of the losses with a count
  int64_t examples_ = 0;
  const Metrics& metrics_;
  bool are_names_agreed_;
  std::optional<std::vector<std::string>> names_ = {};  // of the values; none before the first step
  // (1,), the sums of value times examples, and of the count.
  std::vector<torch::Tensor> values_ = {};
  double seconds_before_ = 0;  // time of the epoch in earlier processes
  Stopwatch stopwatch_;
};

}  // namespace sconce
