#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/data/item_source.hpp"

namespace sconce::data {

namespace detail {

// The position of an item within several sources.
struct ItemPlace {
  size_t source;
  int64_t index;
};

// Cumulative item counts: in the first source, in the first two sources, and so on.
class CumulativeSizes {
 public:
  void add(int64_t size);
  int64_t total() const { return sums_.empty() ? 0 : sums_.back(); }
  ItemPlace place_of(int64_t index) const;
  const std::vector<int64_t>& sums() const { return sums_; }

 private:
  std::vector<int64_t> sums_ = {};
};

void check_not_empty(size_t sources);

}  // namespace detail

/// Concatenates several sources into one for a `DataLoader`. Construct a ConcatDataset as
/// `ConcatDataset(a, b)` or from a `std::vector` of sources. The sources may have different types
/// if their items have the same type. A ConcatDataset and its copies share ownership of the
/// sources. `draws` is true if any source draws random numbers. Python:
/// `torch.utils.data.ConcatDataset`.
template <class Item, bool draws = false>
class ConcatDataset {
 public:
  /// Concatenates the sources.
  /// @throw c10::Error if a source has a negative size.
  template <ItemSource... Sources>
    requires(sizeof...(Sources) > 0)
  explicit ConcatDataset(Sources... sources) {
    (add(std::move(sources)), ...);
  }

  /// Concatenates the sources in a vector.
  /// @throw c10::Error if the vector is empty or a source has a negative size.
  template <ItemSource Source>
  explicit ConcatDataset(std::vector<Source> sources) {
    detail::check_not_empty(sources.size());
    for (auto& source : sources) add(std::move(source));
  }

  /// Returns the total number of items. Python: `len(dataset)`.
  int64_t size() const { return sizes_.total(); }

  /// Returns the item at `index`. Items from the first source come first.
  /// @throw c10::Error if `index` is out of range.
  Item get(int64_t index) const
    requires(!draws)
  {
    return item(index, {});
  }

  /// Returns the item at `index`. If the item's source draws random numbers, it draws them from
  /// `generator`. This overload is available only if at least one source draws random numbers.
  /// @throw c10::Error if `index` is out of range.
  Item get(int64_t index, const at::Generator& generator) const
    requires draws
  {
    return item(index, generator);
  }

  /// Returns the cumulative item counts: the number of items in the first source, in the first two
  /// sources, and so on.
  /// Python: `cumulative_sizes`.
  const std::vector<int64_t>& cumulative_sizes() const { return sizes_.sums(); }

 private:
  template <class Source>
  void add(Source source) {
    sizes_.add(source.size());
    getters_.push_back([shared = std::make_shared<const Source>(std::move(source))](
                           int64_t index, const at::Generator& generator) -> Item {
      if constexpr (detail::DrawsItem<Source>) {
        return shared->get(index, generator);
      } else {
        return shared->get(index);
      }
    });
  }

  Item item(int64_t index, const at::Generator& generator) const {
    const auto place = sizes_.place_of(index);
    return getters_[place.source](place.index, generator);
  }

  detail::CumulativeSizes sizes_ = {};
  std::vector<std::function<Item(int64_t, const at::Generator&)>> getters_ = {};
};

template <ItemSource First, ItemSource... Rest>
ConcatDataset(First, Rest...)
    -> ConcatDataset<typename detail::ItemOf<First>::type,
                     (detail::DrawsItem<First> || ... || detail::DrawsItem<Rest>)>;
template <ItemSource Source>
ConcatDataset(std::vector<Source>)
    -> ConcatDataset<typename detail::ItemOf<Source>::type, detail::DrawsItem<Source>>;

}  // namespace sconce::data
