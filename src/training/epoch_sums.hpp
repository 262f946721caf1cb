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

/// The sums of the loss, the metrics, and the step values over the finished batches in an epoch.
/// The sums stay on the device until the epoch ends.
class EpochSums {
 public:
  /// The metrics must outlive this object. If steps cannot have values, the ranks need one fewer
  /// collective.
  EpochSums(torch::Device device, const Metrics& metrics, bool may_have_values);

  /// Resets the sums to 0, unless the epoch resumes at `batch`.
  void begin(int64_t batch = 0);

  /// Adds the output of a batch with the given number of examples.
  /// @throw c10::Error if the names of its values differ from the names in earlier steps or are not
  /// valid.
  void add(const StepOutput& step, int64_t examples);

  /// Shares the names of the values with all ranks, because some ranks may not have run a batch
  /// yet. Later calls do nothing. All ranks must call this function before `all_sums`.
  /// @throw c10::Error if the names differ between ranks.
  void agree_on_names(const distributed::ProcessGroup& group);

  int64_t examples() const { return examples_; }
  double seconds() const { return seconds_before_ + stopwatch_.seconds(); }

  struct Values {
    double loss;
    MetricValues metrics;
  };

  /// Returns the loss, the metrics that are a single number, and the values, computed over all
  /// ranks. This call is the only one that reads from the device. Afterwards, the metrics contain
  /// the sums over all ranks.
  Values values(const distributed::ProcessGroup& group, const std::string& prefix);

  /// Returns the sums of all ranks with shape (ranks, n), or (ranks, 0) if the epoch has not
  /// started.
  at::Tensor all_sums(const distributed::ProcessGroup& group, bool mid_epoch) const;
  /// Continues from this rank's row in `all_sums`, with the given value names and the time already
  /// spent on the epoch.
  void load(const at::Tensor& all_sums, std::vector<std::string> names, int rank, double seconds);

  /// Returns the names of the values. If there is a count, the first name represents it. Returns an
  /// empty list before the first step.
  std::vector<std::string> value_names() const {
    return names_.value_or(std::vector<std::string>());
  }

 private:
  bool is_counted() const;
  void set_names(std::vector<std::string> names);
  void add_values(const StepOutput& step, int64_t examples);
  // Returns this process's sums on the device: the loss sum, the number of examples, the metric
  // sums, and the value sums.
  torch::Tensor sums() const;
  // Sets the sums from a CPU tensor, in the order used by `sums()`.
  void set_examples_and_metrics(const torch::Tensor& sums);

  torch::Tensor loss_;  // (1,), sum of loss times examples, or of losses if counted
  int64_t examples_ = 0;
  const Metrics& metrics_;
  bool are_names_agreed_;
  std::optional<std::vector<std::string>> names_ = {};  // value names; set in the first step
  // Tensors with shape (1,). Each tensor contains either the example-weighted sum of a value or the
  // sum of the counts.
  std::vector<torch::Tensor> values_ = {};
  double seconds_before_ = 0;  // time spent on the epoch in earlier processes
  Stopwatch stopwatch_;
};

}  // namespace sconce
