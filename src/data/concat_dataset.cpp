#include "sconce/data/concat_dataset.hpp"

#include <c10/util/Exception.h>

#include <algorithm>

namespace sconce::data::detail {

namespace {
constexpr auto concat_name = "sconce::data::ConcatDataset";
}  // namespace

void CumulativeSizes::add(int64_t size) {
  TORCH_CHECK(size >= 0, concat_name, ": expected sources with non-negative sizes, got ", size,
              " in source ", sums_.size());
  sums_.push_back(total() + size);
}

ItemPlace CumulativeSizes::place_of(int64_t index) const {
  TORCH_CHECK(index >= 0 && index < total(), concat_name,
              "::get: expected a non-negative index below ", total(), ", got ", index);
  const auto found = std::upper_bound(sums_.begin(), sums_.end(), index);
  const int64_t before = found == sums_.begin() ? 0 : *std::prev(found);
  return {static_cast<size_t>(found - sums_.begin()), index - before};
}

void check_not_empty(size_t sources) {
  TORCH_CHECK(sources > 0, concat_name, ": expected at least 1 source, got none");
}

}  // namespace sconce::data::detail
