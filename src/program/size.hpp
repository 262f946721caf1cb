#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace sconce::program::detail {

/// An integer in a program that may depend on the program's dynamic sizes, expressed as a sum of
/// terms.
struct Size {
  /// A coefficient times some of the dynamic sizes.
  struct Term {
    bool operator==(const Term&) const = default;

    int64_t coefficient = 0;
    std::vector<size_t> sizes = {};  // indices of the sizes
  };

  Size() = default;
  explicit Size(int64_t constant);
  bool operator==(const Size&) const = default;

  /// Returns the integer, or std::nullopt if it depends on a dynamic size.
  std::optional<int64_t> constant() const;

  /// Returns the integer for these values of the dynamic sizes.
  /// @throw c10::Error if the result does not fit in 64 bits.
  int64_t at(c10::IntArrayRef sizes) const;

  std::vector<Term> terms = {};  // no coefficient is 0
};

/// Returns the value of a dynamic size at a corner. A function is recorded at two values of each
/// size: `smaller` and `smaller` plus one. Corner c uses the larger value of size i if bit i in c
/// is set.
int64_t size_at_corner(int64_t smaller, size_t index, size_t corner);

/// Returns the sum of products of sizes and integers that equals these values at the corners.
Size size_through(std::vector<int64_t> at_corners, c10::IntArrayRef smaller);

}  // namespace sconce::program::detail
