#pragma once

namespace simgpu {

/// If this process runs Python, makes Python wait for LibTorch's autograd threads when it shuts
/// down. Does nothing if the calling thread does not hold Python's lock. A later call may succeed.
void wait_for_autograd_at_exit();

}  // namespace simgpu
