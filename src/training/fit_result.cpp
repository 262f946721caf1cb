#include "sconce/training/fit_result.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>

namespace sconce {

bool MetricValues::contains(const std::string& name) const {
  return std::any_of(begin(), end(), [&](const auto& value) { return value.first == name; });
}

double MetricValues::at(const std::string& name) const {
  const auto found =
      std::find_if(begin(), end(), [&](const auto& value) { return value.first == name; });
  if (found != end()) return found->second;
  std::string names;
  for (const auto& value : values_) names += (names.empty() ? "" : ", ") + value.first;
  TORCH_CHECK_INDEX(false, "sconce::MetricValues: expected one of [", names, "], got ", name);
}

double FitResult::examples_per_second() const {
  if (epochs.empty()) return std::numeric_limits<double>::quiet_NaN();
  double examples = 0;
  double seconds = 0;
  for (const auto& epoch : epochs) {
    examples += static_cast<double>(epoch.examples);
    seconds += epoch.seconds;
  }
  return examples / seconds;
}

}  // namespace sconce
