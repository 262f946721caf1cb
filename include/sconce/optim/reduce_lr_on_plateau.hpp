#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sconce/optim/lr_scheduler_base.hpp"
#include "sconce/optim/metric_mode.hpp"

namespace sconce::optim::lr_scheduler {

/// Whether a threshold is relative to the best metric (`rel`) or an absolute difference (`abs`).
enum class ThresholdMode { rel, abs };

/// Options for `ReduceLROnPlateau`, with the same names and defaults as in Python.
struct ReduceLROnPlateauOptions {
  /// Whether a lower or a higher metric value is better. As in Python, defaults to `min`. In a
  /// `PlateauScheduling`, defaults to the direction that the metric reports as better.
  std::optional<MetricMode> mode = {};
  double factor = 0.1;      ///< factor by which to multiply the learning rate, below 1
  int64_t patience = 10;    ///< number of epochs without improvement before a reduction
  double threshold = 1e-4;  ///< smallest change that counts as an improvement
  ThresholdMode threshold_mode = ThresholdMode::rel;  ///< how `threshold` is interpreted
  int64_t cooldown = 0;           ///< number of epochs to ignore after a reduction
  PerGroup<double> min_lr = 0.0;  ///< lower bound of the learning rate
  double eps = 1e-8;              ///< smallest learning rate change that is applied
};

/// Reduces the learning rate by a factor when a metric has not improved for more than `patience`
/// epochs.
///
///     optim::lr_scheduler::ReduceLROnPlateau scheduler(optimizer, {.patience = 2});
///     for (...) scheduler.step(validation_loss);
///
/// Python: `ReduceLROnPlateau`.
class ReduceLROnPlateau final : public Scheduler {
 public:
  /// @throw c10::Error if `factor` is not below 1, or if `min_lr` is a list whose length differs
  /// from the number of parameter groups.
  explicit ReduceLROnPlateau(torch::optim::Optimizer& optimizer,
                             const ReduceLROnPlateauOptions& options = {});

  /// Processes an epoch's metric value and reduces the learning rate if necessary. NaN does not
  /// count as an improvement.
  /// @throw c10::Error if a parameter group was added and `min_lr` is a list.
  void step(double metrics);

  /// Returns the mode that was passed to the constructor, or an empty optional if none was passed.
  std::optional<MetricMode> given_mode() const { return options_.mode; }
  /// Returns the current mode. If the options do not specify a mode, the mode is `min` until
  /// `set_mode` or `load_state_dict` changes it.
  MetricMode mode() const { return mode_; }
  /// Sets the mode. If the new mode differs from the current mode, the best metric and the
  /// bad-epoch count are discarded. Returns whether a best metric was discarded.
  bool set_mode(MetricMode mode);

 private:
  void visit_options(StateVisitor& state) override;
  void visit_progress(StateVisitor& state) override;
  bool is_better(double metric) const;
  void reduce();

  ReduceLROnPlateauOptions options_;
  MetricMode mode_;
  std::vector<double> min_lrs_;
  std::optional<double> default_min_lr_ = {};
  double best_;
  int64_t cooldown_counter_ = 0;
  int64_t num_bad_epochs_ = 0;
};

}  // namespace sconce::optim::lr_scheduler
