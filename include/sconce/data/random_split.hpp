#pragma once

#include <ATen/core/Generator.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sconce/data/subset.hpp"

namespace sconce::data {

/// The part sizes for `random_split`. Integers specify item counts, and floating-point numbers
/// specify fractions of all items.
class SplitLengths {
 public:
  /// Sets the number of items in each part, as in `{800, 200}`.
  template <std::integral... Lengths>
    requires(sizeof...(Lengths) > 0)
  SplitLengths(Lengths... lengths) : lengths_{static_cast<int64_t>(lengths)...} {}
  /// Sets the number of items in each part.
  SplitLengths(std::vector<int64_t> lengths) : lengths_(std::move(lengths)) {}

  /// Sets the fraction of items in each part, as in `{0.8, 0.2}`.
  template <std::floating_point... Fractions>
    requires(sizeof...(Fractions) > 0)
  SplitLengths(Fractions... fractions) : fractions_{static_cast<double>(fractions)...} {}
  /// Sets the fraction of items in each part.
  SplitLengths(std::vector<double> fractions) : fractions_(std::move(fractions)) {}

  /// Returns the number of items in each part of a source with `size` items. Part sizes computed
  /// from fractions are rounded down, and the remaining items are distributed round-robin, as in
  /// Python.
  /// @throw c10::Error if:
  /// - there are no parts or no items, or the number of items in a part is zero or negative;
  /// - the lengths do not add up to `size`;
  /// - a fraction is not between 0 and 1, or the fractions do not add up to 1 within 1e-9.
  std::vector<int64_t> of(int64_t size) const;

 private:
  std::vector<int64_t> lengths_ = {};
  std::vector<double> fractions_ = {};
};

namespace detail {

// Returns the indices of the items in each part. `size` is the size of the source.
std::vector<std::vector<int64_t>> split_indices(std::optional<int64_t> size,
                                                const SplitLengths& lengths,
                                                const std::optional<at::Generator>& generator);

}  // namespace detail

/// Randomly splits a source into disjoint parts:
/// `random_split(points, {0.8, 0.2}, at::make_generator<at::CPUGeneratorImpl>(42))`. The parts
/// share ownership of the source. The parts of a `Dataset` contain copies of its rows, and the
/// parts of a `torch::data` dataset contain copies of the dataset. A single `torch::randperm` over
/// all items determines which items each part contains and in which order, so the parts are the
/// same as in Python for the same generator. By default, LibTorch's CPU generator is used. Python:
/// `torch.utils.data.random_split`.
/// @throw c10::Error in the same cases as `SplitLengths::of`, or if a `torch::data` dataset has no
/// size. If the function throws, the generator remains unchanged. **An empty part causes an
/// error**, whereas Python accepts empty parts, sometimes with a warning.
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

/// Randomly splits selected rows of two tensors, such as a part from an earlier split. Works like
/// the overload above.
/// @throw c10::Error in the same cases as above.
inline std::vector<Subset<Dataset>> random_split(
    const Subset<Dataset>& source, const SplitLengths& lengths,
    const std::optional<at::Generator>& generator = {}) {
  return random_split<Dataset>(source, lengths, generator);
}

}  // namespace sconce::data
