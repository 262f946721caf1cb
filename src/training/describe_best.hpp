#pragma once

#include <string>

#include "sconce/optim/metric_mode.hpp"

namespace sconce {

/// Returns a description of the criterion for the best value, such as "lowest test_loss".
inline std::string describe_best(optim::MetricMode mode, const std::string& monitor) {
  return (mode == optim::MetricMode::max ? "highest " : "lowest ") + monitor;
}

}  // namespace sconce
