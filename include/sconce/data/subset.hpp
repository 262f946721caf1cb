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

// The items of a source that a subset has. Copies share them.
class SubsetIndices {
 public:
  SubsetIndices(std::vector<int64_t> indices, std::optional<int64_t> source_size);

  int64_t size() const { return static_cast<int64_t>(all_->size()); }
  const std::vector<int64_t>& all() const { return *all_; }
  // Returns the source's index of an item of the subset.
  int64_t at(int64_t index) const;

 private:
  std::shared_ptr<const std::vector<int64_t>> all_;
};

// Returns the number of rows of both tensors.
int64_t rows_of(const Dataset& dataset);

// What the parts of a split have of their source: item sources are shared.
template <class Source>
auto shareable(Source source) {
  if constexpr (ItemSource<Source>) {
    return std::make_shared<const Source>(std::move(source));
  } else {
    return source;
  }
}

}  // namespace detail

/// Some items of a source, in the order of their indices, for a `DataLoader`. An index may be
/// repeated. The subset owns the source, and copies of the subset share it. Its items have indices
/// of their own, from 0 on: `failed_item()` of a loader is one of these, and `indices()` has the
/// source's. A dataset of `torch::data` may be the source too: each copy then has its own. Python:
/// `torch.utils.data.Subset`.
template <class Source>
class Subset {
  static_assert(ItemSource<Source>,
                "sconce::data::Subset: expected a source with `size() const`, and `get(index) "
                "const` or `get(index, at::Generator) const` that returns tensors, a dataset of "
                "torch::data whose get_batch takes indices, or a sconce::data::Dataset");

 public:
  /// Takes the source and the indices.
  /// @throw c10::Error if an index is not in 0 to `source.size()` - 1.
  Subset(Source source, std::vector<int64_t> indices)
      : Subset(detail::shareable(std::move(source)), std::move(indices)) {}

  /// Takes a source that has other owners, such as another subset.
  /// @throw c10::Error if the source is null, or as above.
  Subset(std::shared_ptr<const Source> source, std::vector<int64_t> indices)
      : source_(checked(std::move(source))), indices_(std::move(indices), source_->size()) {}

  /// Returns the number of items. Python: `len(subset)`.
  int64_t size() const { return indices_.size(); }

  /// Returns the item of the source with the index `indices()[index]`.
  /// @throw c10::Error if there is no such item.
  auto get(int64_t index) const
    requires detail::GetsItem<Source>
  {
    return source_->get(indices_.at(index));
  }

  /// Returns an item of a source that draws random numbers, as above.
  auto get(int64_t index, const at::Generator& generator) const
    requires detail::DrawsItem<Source>
  {
    return source_->get(indices_.at(index), generator);
  }

  /// Returns the source. Python: `subset.dataset`.
  const Source& dataset() const { return *source_; }

  /// Returns the source's index of each item. Python: `subset.indices`.
  const std::vector<int64_t>& indices() const { return indices_.all(); }

 private:
  static std::shared_ptr<const Source> checked(std::shared_ptr<const Source> source) {
    TORCH_CHECK(source, "sconce::data::Subset: expected a source, got null");
    return source;
  }

  std::shared_ptr<const Source> source_;
  detail::SubsetIndices indices_;
};

/// @cond  Doxygen takes what follows for functions and classes of the same name.
template <class Source>
Subset(std::shared_ptr<Source>, std::vector<int64_t>) -> Subset<std::remove_const_t<Source>>;

/// Some items of a dataset of `torch::data`, for a `DataLoader`. Each copy has its own dataset,
/// because the functions that read one are not const.
template <class Source>
  requires(TorchDataset<Source> && !ItemSource<Source>)
class Subset<Source> {
  static_assert(!StatefulTorchDataset<Source>,
                "sconce::data::Subset: expected a dataset that gives any item at any time, got a "
                "stateful one");

 public:
  /// Type of what `get_batch` returns: that of the dataset.
  using BatchType = typename Source::BatchType;

  /// Takes the dataset and the indices.
  /// @throw c10::Error if the dataset has no size, or an index is not in 0 to its size - 1.
  Subset(Source source, std::vector<int64_t> indices)
      : source_(std::move(source)), indices_(std::move(indices), source_.size()) {}

  /// Returns the number of items.
  std::optional<size_t> size() const { return indices_.all().size(); }

  /// Returns the item of the dataset with the index `indices()[index]`, if the dataset has `get`.
  /// @throw c10::Error if there is no such item.
  auto get(size_t index)
    requires requires(Source& source) { source.get(0); }
  {
    return source_.get(of_source(index));
  }

  /// Returns what `get_batch` of the dataset returns for these items.
  /// @throw c10::Error if there is no such item.
  BatchType get_batch(c10::ArrayRef<size_t> indices) {
    std::vector<size_t> all;
    for (const size_t index : indices) all.push_back(of_source(index));
    return source_.get_batch(all);
  }

  /// Returns the dataset.
  const Source& dataset() const { return source_; }

  /// Returns the dataset's index of each item.
  const std::vector<int64_t>& indices() const { return indices_.all(); }

 private:
  size_t of_source(size_t index) const {
    return static_cast<size_t>(indices_.at(static_cast<int64_t>(index)));
  }

  Source source_;
  detail::SubsetIndices indices_;
};

/// @endcond

/// A copy of some rows of two tensors, on their device: a `Dataset` for `Batches`.
template <>
class Subset<Dataset> : public Dataset {
 public:
  /// Copies the rows.
  /// @throw c10::Error if the two tensors do not have the same number of rows, or an index is not
  /// in 0 to this number - 1.
  Subset(const Dataset& source, std::vector<int64_t> indices);

  /// Returns the number of rows.
  int64_t size() const { return indices_.size(); }

  /// Returns the row of the source that each row is.
  const std::vector<int64_t>& indices() const { return indices_.all(); }

 private:
  detail::SubsetIndices indices_;
};

/// @cond  as above
Subset(Subset<Dataset>, std::vector<int64_t>) -> Subset<Dataset>;
/// @endcond

}  // namespace sconce::data
