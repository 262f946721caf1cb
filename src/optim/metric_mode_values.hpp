#pragma once

#include <array>
#include <limits>

#include "sconce/optim/metric_mode.hpp"

namespace sconce::optim {

/// Returns the names used in states. StateVisitor looks up this function.
constexpr std::array<const char*, 2> names(MetricMode) {
  return {"min", "max"};
}

/// Returns the worst possible value.
constexpr double worst(MetricMode mode) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return mode == MetricMode::min ? infinity : -infinity;
}

}  // namespace sconce::optim
