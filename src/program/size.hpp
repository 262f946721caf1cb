#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace sconce::program::detail {

/// An integer of a program that may depend on its dynamic sizes, as a sum of terms.
struct Size {
  /// A coefficient times some of the dynamic sizes.
  struct Term {
    bool operator==(const Term&) const = default;

    int64_t coefficient = 0;
    std::vector<size_t> sizes = {};  // their indices
  };

  Size() = default;
  explicit Size(int64_t constant);
  bool operator==(const Size&) const = default;

  /// Returns the integer, or nothing if it depends on a dynamic size.
  std::optional<int64_t> constant() const;

  /// Returns the integer at these values of the dynamic sizes.
  /// @throw c10::Error if it does not fit in 64 bits.
  int64_t at(c10::IntArrayRef sizes) const;

  std::vector<Term> terms = {};  // none has the coefficient 0
};

/// A value of each dynamic size at which a function is recorded, and one more than that.
/// Corner c has the larger value of size i if bit i of c is set.
int64_t size_at_corner(int64_t smaller, size_t index, size_t corner);

/// Returns the sum of products of the sizes and integers that has these values at the corners.
Size size_through(std::vector<int64_t> at_corners, c10::IntArrayRef smaller);

}  // namespace sconce::program::detail
