#pragma once

namespace simgpu {

/// If counting is enabled, notifies the runtime of the ranges that appear in profiles
/// (`RECORD_USER_SCOPE` and Python's `torch.profiler.record_function`).
void follow_ranges();

}  // namespace simgpu
