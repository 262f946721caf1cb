#include "sconce/data/random_split.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/randperm.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <numeric>

namespace sconce::data {
namespace {

constexpr auto split_name = "sconce::data::random_split";

void check_lengths(c10::ArrayRef<int64_t> lengths, int64_t size) {
  for (const int64_t length : lengths) {
    TORCH_CHECK(length >= 1 && length <= size, split_name, ": expected lengths from 1 to ", size,
                " (the number of items), got ", lengths);
  }
  const int64_t sum = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  TORCH_CHECK(sum == size, split_name, ": expected lengths that add up to ", size,
              " (the number of items), got ", lengths, " with a sum of ", sum);
}

void check_fractions(c10::ArrayRef<double> fractions) {
  for (const double fraction : fractions) {
    TORCH_CHECK(fraction >= 0 && fraction <= 1, split_name,
                ": expected fractions from 0 to 1, got ", fractions);
  }
  const double sum = std::accumulate(fractions.begin(), fractions.end(), 0.);
  TORCH_CHECK(std::abs(sum - 1) <= 1e-9, split_name, ": expected fractions that add up to 1, got ",
              fractions, " with a sum of ", sum);
}

std::vector<int64_t> lengths_of(c10::ArrayRef<double> fractions, int64_t size) {
  std::vector<int64_t> lengths;
  for (const double fraction : fractions) {
    lengths.push_back(static_cast<int64_t>(std::floor(static_cast<double>(size) * fraction)));
  }
  const int64_t left = size - std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  for (int64_t i = 0; i < left; ++i) ++lengths[static_cast<size_t>(i) % lengths.size()];
  for (const int64_t length : lengths) {
    TORCH_CHECK(length >= 1, split_name,
                ": expected fractions that assign each part at least one of ", size, " items, got ",
                fractions, ", which give ", c10::ArrayRef<int64_t>(lengths), " items");
  }
  return lengths;
}

}  // namespace

std::vector<int64_t> SplitLengths::of(int64_t size) const {
  TORCH_CHECK(!lengths_.empty() || !fractions_.empty(), split_name,
              ": expected at least 1 part, got none");
  TORCH_CHECK(size >= 1, split_name, ": expected a source with at least 1 item, got ", size);
  if (lengths_.empty()) check_fractions(fractions_);
  auto lengths = lengths_.empty() ? lengths_of(fractions_, size) : lengths_;
  check_lengths(lengths, size);
  return lengths;
}

std::vector<std::vector<int64_t>> detail::split_indices(
    std::optional<int64_t> size, const SplitLengths& lengths,
    const std::optional<at::Generator>& generator) {
  TORCH_CHECK(size, split_name,
              ": expected a dataset with a known size, got a dataset without a size");
  const auto lengths_of_parts = lengths.of(*size);
  const auto order = at::randperm(*size, generator, at::kLong);
  const auto* next = order.const_data_ptr<int64_t>();
  std::vector<std::vector<int64_t>> parts;
  for (const int64_t length : lengths_of_parts) {
    parts.emplace_back(next, next + length);
    next += length;
  }
  return parts;
}

}  // namespace sconce::data
