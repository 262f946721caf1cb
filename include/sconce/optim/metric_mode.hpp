#pragma once

namespace sconce::optim {

/// Whether a lower (`min`) or a higher (`max`) metric value is better.
/// Python: `mode="min"` or `mode="max"`.
enum class MetricMode { min, max };

}  // namespace sconce::optim
