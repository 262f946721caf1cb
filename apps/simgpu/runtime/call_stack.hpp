#pragma once

#include <string>
#include <vector>

namespace simgpu {

/// The return addresses of a thread, innermost first.
using CallStack = std::vector<void*>;

/// Returns the calling thread's stack. This function may be called with the lock held, because it
/// acquires none of the loader's locks, except in the very first call.
CallStack call_stack();

/// Returns the program's innermost file and the innermost calls in that file, as addresses for
/// addr2line: "file 0x12 0x34". Some of these calls may come from LibTorch's headers, because their
/// functions are compiled into the program. LibTorch, the libraries that it depends on, and the
/// Python interpreter do not count as the program. The result is empty if no call is in the
/// program, as in LibTorch's own threads.
std::string place_of(const CallStack& stack);

}  // namespace simgpu
