#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

/// Lets the fault handler name the block. The handler does not know blocks beyond a number that no
/// program comes near to.
void watch_block(uintptr_t begin, size_t size, int device);

/// Takes back `watch_block`.
void forget_block(uintptr_t begin);

/// Sets the handler of SIGSEGV that tells when the host reads or writes memory of a GPU by its
/// pointer, unless it is set. Programs replace it: call this wherever they use CUDA.
void keep_fault_handler();

}  // namespace simgpu
