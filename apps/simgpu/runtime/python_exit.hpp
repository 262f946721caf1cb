#pragma once

namespace simgpu {

/// Lets Python, if it runs this process, wait at its end for LibTorch's autograd. Does nothing if
/// the calling thread does not hold Python's lock; a later call may.
void wait_for_autograd_at_exit();

}  // namespace simgpu
