#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "program/graph.hpp"

namespace sconce::program::detail {

/// The layout of a tensor in its storage, in elements of its type.
struct Placement {
  static Placement of(const at::Tensor& tensor);
  /// Returns the placement of all elements of a storage as a vector.
  static Placement flat(int64_t numel);
  bool operator==(const Placement&) const = default;

  int64_t numel() const;
  /// Returns the sizes and strides in descending order of strides. `order` receives the
  /// corresponding dimensions.
  Placement by_stride(std::vector<int64_t>& order) const;
  bool is_contiguous() const;

  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

/// Adds a call with a single tensor as its result, and returns the result's number.
size_t add_call(Graph& graph, const char* op, const char* overload,
                std::vector<Argument> arguments);

/// Adds memory without values that has this layout on the CPU, and returns its number.
size_t add_empty(Graph& graph, const Placement& placement, c10::ScalarType dtype);

/// Adds calls that create a vector with the elements of `base` in memory order, and returns its
/// number. The vector matches `base` if `base` has this layout in memory.
/// @throw c10::Error if `base` does not fill its memory.
size_t add_flat(Graph& graph, size_t base, const Placement& base_placement);

/// Adds calls that create a tensor from the memory of `base` with the other placement, and returns
/// its number. It is a view if `base` is a vector. A compiler can optimize through these calls,
/// unlike through `as_strided`, which is used only for overlapping elements. In Python, a result
/// may have a different memory layout than here, so the calls do not depend on the layout.
/// @throw c10::Error for the same reason as `add_flat`.
size_t add_view(Graph& graph, size_t base, const Placement& base_placement,
                const Placement& view_placement);

}  // namespace sconce::program::detail
