#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sconce/optim/lr_scheduler_base.hpp"
#include "sconce/optim/metric_mode.hpp"

namespace sconce::optim::lr_scheduler {

/// Whether a threshold is relative to the best metric or an absolute difference.
enum class ThresholdMode { rel, abs };

/// Options of `ReduceLROnPlateau`, with Python's names and defaults.
struct ReduceLROnPlateauOptions {
  /// Whether a lower or a higher metric is better. None: as `min`, Python's default; in a
  /// `PlateauScheduling` as the metric's own direction.
  std::optional<MetricMode> mode = {};
  double factor = 0.1;      ///< factor of a reduction, below 1
  int64_t patience = 10;    ///< number of epochs without improvement before a reduction
  double threshold = 1e-4;  ///< smallest change that counts as an improvement
  ThresholdMode threshold_mode = ThresholdMode::rel;  ///< how the threshold is measured
  int64_t cooldown = 0;           ///< number of epochs to ignore after a reduction
  PerGroup<double> min_lr = 0.0;  ///< lower bound of the learning rate
  double eps = 1e-8;              ///< smallest change of a learning rate that is made
};

/// Multiplies the learning rate by a factor if a metric has not improved for more than patience
/// epochs.
/// Python: `ReduceLROnPlateau`.
class ReduceLROnPlateau final : public Scheduler {
 public:
  /// @throw c10::Error if factor is not below 1, or the length of a list of min_lr is not the
  /// number of groups.
  explicit ReduceLROnPlateau(torch::optim::Optimizer& optimizer,
                             const ReduceLROnPlateauOptions& options = {});

  /// Takes the metric of an epoch. nan counts as no improvement.
  /// @throw c10::Error if a group was added and min_lr is a list.
  void step(double metrics);

  /// Returns the mode of the constructor's options, if they had one.
  std::optional<MetricMode> given_mode() const { return options_.mode; }
  /// Returns the mode in use. Without a mode in the options it is `min` until `set_mode` or
  /// `load_state_dict` changes it.
  MetricMode mode() const { return mode_; }
  /// Sets the mode. If it is another one, forgets the best metric and the number of bad epochs, and
  /// returns whether a metric was forgotten.
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
