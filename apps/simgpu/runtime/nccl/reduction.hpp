#pragma once

#include <nccl.h>

#include <cstddef>
#include <memory>
#include <span>

namespace simgpu::nccl {

/// Returns the size of an element in bytes.
/// @throw Failure if NCCL has no such type.
size_t size_of(ncclDataType_t type);

/// Specifies how the ranks' elements are combined into one.
struct Reduction {
  /// One of NCCL's five operators.
  ncclRedOp_t op = ncclSum;
  /// A factor, of the same type as the elements, by which they are multiplied before summing, or
  /// null.
  std::shared_ptr<const void> factor = nullptr;
};

/// Returns PyTorch's name for the type.
const char* name_of(ncclDataType_t type);

/// Returns the name of the operator, such as "sum".
const char* name_of(const Reduction& reduction);

/// Checks that elements of the type can be reduced.
/// @throw Failure
void check_reducible(ncclDataType_t type);

/// Reduces the inputs in the given order and writes `count` elements to `out`. Elements of 16-bit
/// types are summed in float and rounded once.
void reduce(const Reduction& reduction, ncclDataType_t type, std::span<const void* const> inputs,
            void* out, size_t count);

}  // namespace simgpu::nccl
