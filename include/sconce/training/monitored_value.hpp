#pragma once

#include <string>
#include <utility>

#include "sconce/optim/metric_mode.hpp"

namespace sconce {

/// A value that a `Checkpoint` uses to determine a run's best checkpoint.
struct MonitoredValue {
  /// Constructs an unnamed value for which higher is better.
  MonitoredValue(double of = 0) : value(of) {}
  /// Constructs a named value with the given mode.
  MonitoredValue(std::string of_name, double of, optim::MetricMode of_mode)
      : name(std::move(of_name)), value(of), mode(of_mode) {}

  std::string name = {};                            ///< name of the value, such as "test_loss"
  double value;                                     ///< the value itself
  optim::MetricMode mode = optim::MetricMode::max;  ///< whether the lowest or the highest value is
                                                    ///< best
};

}  // namespace sconce
