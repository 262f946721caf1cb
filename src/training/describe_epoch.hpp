#pragma once

#include <algorithm>
#include <charconv>
#include <string>

#include "repr/format.hpp"
#include "sconce/training/fit_result.hpp"

namespace sconce {

// Returns a text description of an epoch's results, such as "loss 0.693, train acc 0.500".
inline std::string describe(const EpochMetrics& epoch) {
  const auto shown = [](double value) { return format(value, std::chars_format::fixed, 3); };
  std::string text = "loss " + shown(epoch.loss);
  const auto& metrics = epoch.metrics;
  const bool has_others = std::any_of(metrics.begin(), metrics.end(),
                                      [](const auto& value) { return value.first != "test_loss"; });
  for (auto [name, value] : metrics) {
    if (has_others && name == "test_loss") continue;
    std::replace(name.begin(), name.end(), '_', ' ');
    text += ", " + name + ' ' + shown(value);
  }
  return text;
}

}  // namespace sconce
