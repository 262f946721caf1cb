#pragma once

#include <string>
#include <vector>

namespace simgpu {

/// Return addresses of a thread, innermost first.
using CallStack = std::vector<void*>;

/// The calling thread's. It may be called with the lock held, since it takes no lock of the loader.
/// The first call of all may not.
CallStack call_stack();

/// The innermost file of the program, and its innermost calls as addresses for addr2line:
/// "file 0x12 0x34". There are some, since functions of LibTorch's headers are compiled in the
/// program. LibTorch, libraries below it and the interpreter of Python are not of the program.
/// Empty if nothing is, as in threads of LibTorch.
std::string place_of(const CallStack& stack);

}  // namespace simgpu
