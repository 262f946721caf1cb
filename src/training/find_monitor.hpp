#pragma once

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <optional>
#include <string>

#include "sconce/optim/metric_mode.hpp"
#include "sconce/training/fit.hpp"

namespace sconce {

// Returns the name of a value of the fit's epochs: `monitor`, or "test_acc" for "val_acc" where no
// value has that name. Throws an error that begins with `who` if there is none.
inline std::string find_monitor(const Fit& fit, const std::string& monitor, const char* who) {
  const auto& names = fit.value_names;
  const auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (has(monitor)) return monitor;
  const std::string of_test = monitor.starts_with("val_") ? "test_" + monitor.substr(4) : monitor;
  TORCH_CHECK(has(of_test), who, ": expected monitor to be one of [", c10::Join(", ", names),
              "], got ", monitor);
  return of_test;
}

// Returns whether the lowest or the highest value is the best: the given mode, or the value's own.
// Throws an error that begins with `who` if there is neither.
inline optim::MetricMode find_mode(const Fit& fit, const std::string& monitor,
                                   std::optional<optim::MetricMode> given, const char* who) {
  if (given) return *given;
  const auto own = fit.value_modes.find(monitor);
  if (own != fit.value_modes.end()) return own->second;
  TORCH_CHECK(monitor.ends_with("loss"), who, ": expected an explicit mode (min or max) for ",
              monitor, ", whose better direction is unknown, got none");
  return optim::MetricMode::min;
}

}  // namespace sconce
