#pragma once

namespace sconce::optim {

/// Whether a lower or a higher value of a metric is better. Python: `mode="min"` or `"max"`.
enum class MetricMode { min, max };

}  // namespace sconce::optim
