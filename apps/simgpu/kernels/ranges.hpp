#pragma once

namespace simgpu {

/// Notifies the runtime of the ranges that profiles show (`RECORD_USER_SCOPE`, Python's
/// `torch.profiler.record_function`), if anything is counted.
void follow_ranges();

}  // namespace simgpu
