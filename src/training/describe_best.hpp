#pragma once

#include <string>

#include "sconce/optim/metric_mode.hpp"

namespace sconce {

/// Returns what is best, such as "lowest test_loss".
inline std::string describe_best(optim::MetricMode mode, const std::string& monitor) {
  return (mode == optim::MetricMode::max ? "highest " : "lowest ") + monitor;
}

}  // namespace sconce
