#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/safe_numerics.h>

#include <cstdint>
#include <limits>

namespace sconce::io {

/// Returns whether all elements of a tensor are located inside a storage with `elements` elements.
/// Returns false if any number is negative, if sizes and strides have different lengths, or if the
/// byte count would overflow.
inline bool fits_in_storage(int64_t offset, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                            uint64_t elements) {
  constexpr uint64_t widest = 64;  // no element is larger
  constexpr uint64_t most = std::numeric_limits<int64_t>::max();
  if (offset < 0 || sizes.size() != strides.size()) return false;
  uint64_t count = widest, last = static_cast<uint64_t>(offset);
  bool empty = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0) return false;
    const auto size = static_cast<uint64_t>(sizes[i]), stride = static_cast<uint64_t>(strides[i]);
    empty = empty || size == 0;
    if (size == 0) continue;
    uint64_t reach = 0;
    if (c10::mul_overflows(count, size, &count)) return false;
    if (c10::mul_overflows(size - 1, stride, &reach)) return false;
    if (c10::add_overflows(last, reach, &last)) return false;
  }
  if (count > most) return false;
  // An empty view may have any offset. For example, the imaginary part of an empty complex tensor
  // has a nonzero offset.
  return empty ? static_cast<uint64_t>(offset) <= most / widest : last < elements;
}

}  // namespace sconce::io
