#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/data/dataset.hpp"
#include "sconce/data/item_source.hpp"
#include "sconce/fwd.hpp"

namespace sconce::data {

namespace detail {

// The indices of the source's items that belong to a subset. Copies share the indices.
class SubsetIndices {
 public:
  SubsetIndices(std::vector<int64_t> indices, std::optional<int64_t> source_size);

  int64_t size() const { return static_cast<int64_t>(all_->size()); }
  const std::vector<int64_t>& all() const { return *all_; }
  // Converts the index of an item in the subset to its index in the source.
  int64_t at(int64_t index) const;

 private:
  std::shared_ptr<const std::vector<int64_t>> all_;
};

// Returns the number of rows, which is the same for both tensors.
int64_t rows_of(const Dataset& dataset);

// Returns the form in which the parts of a split store their source. Item sources are shared.
template <class Source>
auto shareable(Source source) {
  if constexpr (ItemSource<Source>) {
    return std::make_shared<const Source>(std::move(source));
  } else {
    return source;
  }
}

}  // namespace detail

/// Selects items from a source by index, in the given order, for a `DataLoader`. Indices may
/// repeat. The subset owns the source, and copies of the subset share the source. The subset's
/// items are numbered from 0, so a loader's `failed_item()` returns an index in the subset, and
/// `indices()` returns the corresponding indices in the source. The source may also be a
/// `torch::data` dataset, which is copied whenever the subset is copied. Python:
/// `torch.utils.data.Subset`.
template <class Source>
class Subset {
  static_assert(ItemSource<Source>,
                "sconce::data::Subset: expected a source with `size() const`, and `get(index) "
                "const` or `get(index, at::Generator) const` that returns tensors, a torch::data "
                "dataset whose get_batch accepts indices, or a sconce::data::Dataset");

 public:
  /// Constructs a subset that owns `source`.
  /// @throw c10::Error if an index is not between 0 and `source.size()` - 1.
  Subset(Source source, std::vector<int64_t> indices)
      : Subset(detail::shareable(std::move(source)), std::move(indices)) {}

  /// Constructs a subset of a source that is shared with other owners, such as another subset.
  /// @throw c10::Error if `source` is null or in the same cases as above.
  Subset(std::shared_ptr<const Source> source, std::vector<int64_t> indices)
      : source_(checked(std::move(source))), indices_(std::move(indices), source_->size()) {}

  /// Returns the number of items. Python: `len(subset)`.
  int64_t size() const { return indices_.size(); }

  /// Returns the source's item at `indices()[index]`.
  /// @throw c10::Error if `index` is out of range.
  auto get(int64_t index) const
    requires detail::GetsItem<Source>
  {
    return source_->get(indices_.at(index));
  }

  /// Returns the source's item at `indices()[index]`. The source draws random numbers for the item
  /// from `generator`. This overload is available only if the source draws random numbers.
  /// @throw c10::Error if `index` is out of range.
  auto get(int64_t index, const at::Generator& generator) const
    requires detail::DrawsItem<Source>
  {
    return source_->get(indices_.at(index), generator);
  }

  /// Returns the source. Python: `subset.dataset`.
  const Source& dataset() const { return *source_; }

  /// Returns the index of each item in the source. Python: `subset.indices`.
  const std::vector<int64_t>& indices() const { return indices_.all(); }

 private:
  static std::shared_ptr<const Source> checked(std::shared_ptr<const Source> source) {
    TORCH_CHECK(source, "sconce::data::Subset: expected a source, got null");
    return source;
  }

  std::shared_ptr<const Source> source_;
  detail::SubsetIndices indices_;
};

/// @cond  Doxygen would treat the following as functions and classes of the same name.
template <class Source>
Subset(std::shared_ptr<Source>, std::vector<int64_t>) -> Subset<std::remove_const_t<Source>>;

/// Selects items from a `torch::data` dataset for a `DataLoader`. Each copy of the subset contains
/// a separate copy of the dataset, because the functions that read from the dataset are not const.
template <class Source>
  requires(TorchDataset<Source> && !ItemSource<Source>)
class Subset<Source> {
  static_assert(!StatefulTorchDataset<Source>,
                "sconce::data::Subset: expected a dataset that can return any item at any time, "
                "got a stateful dataset");

 public:
  /// Return type of `get_batch`, both in this class and in the dataset.
  using BatchType = typename Source::BatchType;

  /// Constructs a subset that owns a copy of the dataset.
  /// @throw c10::Error if the dataset has no size, or an index is not between 0 and its size - 1.
  Subset(Source source, std::vector<int64_t> indices)
      : source_(std::move(source)), indices_(std::move(indices), source_.size()) {}

  /// Returns the number of items.
  std::optional<size_t> size() const { return indices_.all().size(); }

  /// Returns the dataset's item at `indices()[index]`, if the dataset defines `get`.
  /// @throw c10::Error if `index` is out of range.
  auto get(size_t index)
    requires requires(Source& source) { source.get(0); }
  {
    return source_.get(source_index(index));
  }

  /// Returns the result of the dataset's `get_batch` for the items at `indices`.
  /// @throw c10::Error if an index is out of range.
  BatchType get_batch(c10::ArrayRef<size_t> indices) {
    std::vector<size_t> all;
    for (const size_t index : indices) all.push_back(source_index(index));
    return source_.get_batch(all);
  }

  /// Returns the dataset.
  const Source& dataset() const { return source_; }

  /// Returns the index of each item in the dataset.
  const std::vector<int64_t>& indices() const { return indices_.all(); }

 private:
  size_t source_index(size_t index) const {
    return static_cast<size_t>(indices_.at(static_cast<int64_t>(index)));
  }

  Source source_;
  detail::SubsetIndices indices_;
};

/// @endcond

/// Copies selected rows of two tensors into a `Dataset` on the same device, for `Batches`.
template <>
class Subset<Dataset> : public Dataset {
 public:
  /// Copies the rows.
  /// @throw c10::Error if:
  /// - the two tensors have different numbers of rows;
  /// - an index is not between 0 and the number of rows - 1.
  Subset(const Dataset& source, std::vector<int64_t> indices);

  /// Returns the number of rows.
  int64_t size() const { return indices_.size(); }

  /// Returns the index of each row in the source.
  const std::vector<int64_t>& indices() const { return indices_.all(); }

 private:
  detail::SubsetIndices indices_;
};

/// @cond  as above
Subset(Subset<Dataset>, std::vector<int64_t>) -> Subset<Dataset>;
/// @endcond

}  // namespace sconce::data
