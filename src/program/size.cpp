#include "program/size.hpp"

#include <c10/util/Exception.h>
#include <c10/util/safe_numerics.h>

#include <algorithm>

namespace sconce::program::detail {

Size::Size(int64_t constant) {
  if (constant != 0) terms.push_back({constant, {}});
}

std::optional<int64_t> Size::constant() const {
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms[0].sizes.empty()) return terms[0].coefficient;
  return {};
}

int64_t Size::at(c10::IntArrayRef sizes) const {
  int64_t sum = 0;
  for (const auto& term : terms) {
    int64_t product = term.coefficient;
    bool overflows = false;
    for (const size_t index : term.sizes) {
      overflows |= c10::mul_overflows(product, sizes[index], &product);
    }
    overflows |= c10::add_overflows(sum, product, &sum);
    TORCH_CHECK(!overflows, "expected a size that fits in 64 bits, got a larger one");
  }
  return sum;
}

int64_t size_at_corner(int64_t smaller, size_t index, size_t corner) {
  return smaller + static_cast<int64_t>((corner >> index) & 1);
}

Size size_through(std::vector<int64_t> at_corners, c10::IntArrayRef smaller) {
  // Each pass eliminates one size. For two corners that differ only in the bit for this size, the
  // slope is stored in the corner with the bit set, and the value extrapolated to size 0 is stored
  // in the other corner.
  for (size_t index = 0; index < smaller.size(); ++index) {
    const size_t bit = size_t{1} << index;
    for (size_t corner = 0; corner < at_corners.size(); ++corner) {
      if ((corner & bit) != 0) continue;
      at_corners[corner | bit] -= at_corners[corner];
      at_corners[corner] -= at_corners[corner | bit] * smaller[index];
    }
  }
  Size size;
  for (size_t corner = 0; corner < at_corners.size(); ++corner) {
    if (at_corners[corner] == 0) continue;
    auto& term = size.terms.emplace_back(Size::Term{at_corners[corner], {}});
    for (size_t index = 0; index < smaller.size(); ++index) {
      if (((corner >> index) & 1) != 0) term.sizes.push_back(index);
    }
  }
  return size;
}

}  // namespace sconce::program::detail
