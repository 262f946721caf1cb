#pragma once

#include <string>
#include <vector>

namespace simgpu {

/// Return addresses of a thread, starting with the innermost.
using CallStack = std::vector<void*>;

/// Returns the calling thread's stack. The lock may be held during the call, because the function
/// takes no lock of the loader, except in the very first call.
CallStack call_stack();

/// Returns the innermost file of the program, and the innermost calls in it as addresses for
/// addr2line: "file 0x12 0x34". Such calls exist even if LibTorch is called, because functions from
/// LibTorch's headers are compiled into the program. LibTorch, the libraries below it, and the
/// Python interpreter do not count as the program. The result is empty if no call is in the
/// program, as in LibTorch's threads.
std::string place_of(const CallStack& stack);

}  // namespace simgpu
