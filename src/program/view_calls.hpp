#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "program/graph.hpp"

namespace sconce::program::detail {

/// How a tensor lies in its storage, in elements of its type.
struct Placement {
  static Placement of(const at::Tensor& tensor);
  /// Returns the placement of all elements of a storage, as a vector.
  static Placement flat(int64_t numel);
  bool operator==(const Placement&) const = default;

  int64_t numel() const;
  /// Returns the sizes and strides from the largest stride to the smallest, and in `order` the
  /// dimensions that these are.
  Placement by_stride(std::vector<int64_t>& order) const;
  bool is_contiguous() const;

  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

/// Adds a call with one result, a tensor, and returns the result's number.
size_t add_call(Graph& graph, const char* op, const char* overload,
                std::vector<Argument> arguments);

/// Adds memory without values that lies on the CPU as here, and returns its number.
size_t add_empty(Graph& graph, const Placement& placement, c10::ScalarType dtype);

/// Adds calls that make a vector of the elements of `base` in the order of their memory, and
/// returns its number. Its elements are those of `base` if that lies in memory as here.
/// @throw c10::Error if `base` does not fill its memory.
size_t add_flat(Graph& graph, size_t base, const Placement& of_base);

/// Adds calls that make a tensor of the elements that lie in the memory of `base` with the other
/// placement, and returns its number. It is a view if `base` is a vector. A compiler can look
/// through these calls where it cannot look through `as_strided`, which they need only for
/// elements that overlap. In Python a result may lie in memory otherwise than here, so the calls
/// do not depend on it.
/// @throw c10::Error as `add_flat`.
size_t add_view(Graph& graph, size_t base, const Placement& of_base, const Placement& of_view);

}  // namespace sconce::program::detail
