#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "program/graph.hpp"

namespace sconce::program::detail {

/// A tensor's layout in its storage, in elements of the tensor's type.
struct Placement {
  static Placement of(const at::Tensor& tensor);
  /// Returns the placement of a vector that contains all elements of a storage.
  static Placement flat(int64_t numel);
  bool operator==(const Placement&) const = default;

  int64_t numel() const;
  /// Returns the sizes and strides sorted by descending strides. `order` receives the corresponding
  /// dimensions.
  Placement by_stride(std::vector<int64_t>& order) const;
  bool is_contiguous() const;

  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

/// Adds a call that returns a single tensor, and returns the number of the result.
size_t add_call(Graph& graph, const char* op, const char* overload,
                std::vector<Argument> arguments);

/// Adds uninitialized CPU memory with the given layout, and returns its number.
size_t add_empty(Graph& graph, const Placement& placement, c10::ScalarType dtype);

/// Adds calls that create a vector with the elements of `base` in memory order, and returns the
/// vector's number. If `base` has the layout `base_placement` in memory, the vector matches the
/// memory of `base`.
/// @throw c10::Error if `base` does not span its entire memory.
size_t add_flat(Graph& graph, size_t base, const Placement& base_placement);

/// Adds calls that create a tensor with the other placement from the memory of `base`, and returns
/// the tensor's number. The tensor is a view if `base` is a vector. Unlike `as_strided`, which is
/// used only for overlapping elements, these calls allow a compiler to optimize across them. In
/// Python, the memory layout of a result may differ from the layout here, so the calls do not
/// depend on it.
/// @throw c10::Error under the same condition as `add_flat`.
size_t add_view(Graph& graph, size_t base, const Placement& base_placement,
                const Placement& view_placement);

}  // namespace sconce::program::detail
