#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "simgpu/runtime/stream.hpp"

namespace simgpu {

/// Copies memory on the stream. An asynchronous copy is delayed. Its destination is filled with
/// 0xFF until the copy runs, which happens when another operation requires it to finish first.
/// @throw std::runtime_error for a race, if races are configured to throw.
cudaError_t copy_async(Stream& stream, void* to, const void* from, size_t size,
                       cudaMemcpyKind kind);

}  // namespace simgpu
