#pragma once

namespace simgpu {

/// If Python runs this process, makes it wait for LibTorch's autograd when it shuts down. Does
/// nothing if the calling thread does not hold Python's lock; a later call may succeed.
void wait_for_autograd_at_exit();

}  // namespace simgpu
