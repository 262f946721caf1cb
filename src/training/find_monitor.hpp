#pragma once

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <string>

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

}  // namespace sconce
