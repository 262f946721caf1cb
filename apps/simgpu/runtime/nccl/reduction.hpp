#pragma once

#include <nccl.h>

#include <cstddef>
#include <memory>
#include <span>

namespace simgpu::nccl {

/// Size of an element in bytes.
/// @throw Failure if NCCL has no such type.
size_t size_of(ncclDataType_t type);

/// How the ranks' elements become one.
struct Reduction {
  /// One of NCCL's five.
  ncclRedOp_t op = ncclSum;
  /// What elements are multiplied by before they are summed, of their type; or null.
  std::shared_ptr<const void> factor = nullptr;
};

/// PyTorch's name of the type.
const char* name_of(ncclDataType_t type);

/// "sum".
const char* name_of(const Reduction& reduction);

/// Checks that elements of the type can be reduced.
/// @throw Failure
void check_reducible(ncclDataType_t type);

/// Writes to `out` what the reduction makes of `count` elements of each input, the inputs in the
/// order given. The 16-bit types are summed in float, and rounded once.
void reduce(const Reduction& reduction, ncclDataType_t type, std::span<const void* const> inputs,
            void* out, size_t count);

}  // namespace simgpu::nccl
