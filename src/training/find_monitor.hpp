#pragma once

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <optional>
#include <string>

#include "sconce/optim/metric_mode.hpp"
#include "sconce/training/fit.hpp"

namespace sconce {

inline bool has_value(const Fit& fit, const std::string& name) {
  const auto& names = fit.value_names;
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Throws an error with the prefix `caller` unless the fit has a value with that name. This function
// must be called after the first epoch, because the names of step values are not known until that
// epoch ends.
inline void check_monitor(const Fit& fit, const std::string& monitor, const char* caller) {
  TORCH_CHECK(has_value(fit, monitor), caller, ": expected monitor to be one of [",
              c10::Join(", ", fit.value_names), "], got ", monitor);
}

// Returns whether a step could produce a value with that name, either in training or in a test.
inline bool may_be_of_step(const Fit& fit, const std::string& name) {
  const auto is_prefix = [&](const std::string& value) {
    return value.ends_with("_loss") && name.starts_with(value.substr(0, value.size() - 4));
  };
  return fit.may_have_values &&
         (name.starts_with("train_") ||
          std::any_of(fit.value_names.begin(), fit.value_names.end(), is_prefix));
}

// Returns the name under which an epoch stores the monitored value. The returned name is `monitor`,
// except that the prefix "val_" becomes "test_" unless a test set is named "val". Throws an error
// with the prefix `caller` if there is no such value.
inline std::string find_monitor(const Fit& fit, const std::string& monitor, const char* caller) {
  const bool is_alias =
      monitor.starts_with("val_") && !has_value(fit, monitor) && !has_value(fit, "val_loss");
  std::string name = is_alias ? "test_" + monitor.substr(4) : monitor;
  TORCH_CHECK(may_be_of_step(fit, name) || has_value(fit, name), caller,
              ": expected monitor to be one of [", c10::Join(", ", fit.value_names), "], got ",
              monitor);
  return name;
}

// Returns the given mode or, if no mode is given, the default mode for the monitored value. The
// mode determines whether lower or higher values are better. Throws an error with the prefix
// `caller` if neither a mode nor a default exists.
inline optim::MetricMode find_mode(const Fit& fit, const std::string& monitor,
                                   std::optional<optim::MetricMode> given, const char* caller) {
  if (given) return *given;
  const auto own = fit.value_modes.find(monitor);
  if (own != fit.value_modes.end()) return own->second;
  TORCH_CHECK(monitor.ends_with("loss"), caller, ": expected an explicit mode (min or max) for ",
              monitor, " (it is unknown whether lower or higher is better), got none");
  return optim::MetricMode::min;
}

}  // namespace sconce
