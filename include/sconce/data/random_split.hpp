#pragma once

#include <ATen/core/Generator.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sconce/data/subset.hpp"

namespace sconce::data {

/// The sizes of the parts of a `random_split`. Integers are numbers of items, and floating-point
/// numbers are fractions of all items.
class SplitLengths {
 public:
  /// Takes the number of items of each part: `{800, 200}`.
  template <std::integral... Lengths>
    requires(sizeof...(Lengths) > 0)
  SplitLengths(Lengths... lengths) : lengths_{static_cast<int64_t>(lengths)...} {}
  /// Takes the number of items of each part.
  SplitLengths(std::vector<int64_t> lengths) : lengths_(std::move(lengths)) {}

  /// Takes the fraction of each part: `{0.8, 0.2}`.
  template <std::floating_point... Fractions>
    requires(sizeof...(Fractions) > 0)
  SplitLengths(Fractions... fractions) : fractions_{static_cast<double>(fractions)...} {}
  /// Takes the fraction of each part.
  SplitLengths(std::vector<double> fractions) : fractions_(std::move(fractions)) {}

  /// Returns the number of items of each part of a source of `size` items. With fractions it is
  /// rounded down, and what is left goes to the parts in turn, one item each, as in Python.
  /// @throw c10::Error if:
  /// - there is no part or no item, or a part has no item or a negative number of them;
  /// - the lengths do not add up to `size`;
  /// - a fraction is not in 0 to 1, or the fractions do not add up to 1 within 1e-9.
  std::vector<int64_t> of(int64_t size) const;

 private:
  std::vector<int64_t> lengths_ = {};
  std::vector<double> fractions_ = {};
};

namespace detail {

// Returns the items of each part. `size` is that of the source.
std::vector<std::vector<int64_t>> split_indices(std::optional<int64_t> size,
                                                const SplitLengths& lengths,
                                                const std::optional<at::Generator>& generator);

}  // namespace detail

/// Splits a source at random into parts without common items:
/// `random_split(points, {0.8, 0.2}, at::make_generator<at::CPUGeneratorImpl>(42))`. The parts own
/// the source together. A `Dataset` is split into copies of its rows, a dataset of `torch::data`
/// into copies of the dataset. The items and their order are Python's for the same generator, by
/// default LibTorch's own for the CPU: one `torch::randperm` over all items. Python:
/// `torch.utils.data.random_split`.
/// @throw c10::Error as `SplitLengths::of`, or if a dataset of `torch::data` has no size. The
/// generator is unchanged then. **An empty part is an error**; Python warns, or takes it.
template <class Source>
std::vector<Subset<Source>> random_split(Source source, const SplitLengths& lengths,
                                         const std::optional<at::Generator>& generator = {}) {
  std::optional<int64_t> size;
  if constexpr (std::same_as<Source, Dataset>) {
    size = detail::rows_of(source);
  } else {
    size = source.size();
  }
  auto parts = detail::split_indices(size, lengths, generator);
  const auto shared = detail::shareable(std::move(source));
  std::vector<Subset<Source>> subsets;
  for (auto& indices : parts) subsets.emplace_back(shared, std::move(indices));
  return subsets;
}

/// Splits some rows of two tensors, such as a part of a split, as above.
inline std::vector<Subset<Dataset>> random_split(
    const Subset<Dataset>& source, const SplitLengths& lengths,
    const std::optional<at::Generator>& generator = {}) {
  return random_split<Dataset>(source, lengths, generator);
}

}  // namespace sconce::data
