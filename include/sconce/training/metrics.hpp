#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sconce/metrics/metric.hpp"

namespace sconce {

/// A list of named metrics. For example, the name "acc" produces the values "train_acc" and
/// "test_acc".
using Metrics = std::vector<std::pair<std::string, std::shared_ptr<metrics::Metric>>>;

}  // namespace sconce
