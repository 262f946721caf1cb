#pragma once

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <string>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

// Throws an error that begins with `who` unless the epochs of the fit will have a value of that
// name.
inline void check_monitor(const Fit& fit, const std::string& monitor, const char* who) {
  const auto& names = fit.value_names;
  TORCH_CHECK(std::find(names.begin(), names.end(), monitor) != names.end(), who,
              ": expected monitor to be one of [", c10::Join(", ", names), "], got ", monitor);
}

}  // namespace sconce
