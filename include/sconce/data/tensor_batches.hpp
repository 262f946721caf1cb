#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

#include "sconce/data/data_loader_options.hpp"
#include "sconce/data/detail/loader_base.hpp"
#include "sconce/data/loop_iterator.hpp"
#include "sconce/fwd.hpp"
#include "sconce/nn/tensor_tree.hpp"

namespace sconce::data {

namespace detail {

// Converts the options of `Batches` to the options of a `LoaderBase`.
DataLoaderOptions data_loader_options(BatchesOptions options);

// Checks one of several tensors that contain one row per item. `first` is the first of these
// tensors.
void check_rows(const char* caller, const std::string& name, const torch::Tensor& tensor,
                const torch::Tensor& first, const char* first_name);

// Selects the rows of one batch from each of its tensors.
class BatchRows {
 public:
  // Selects batch `index` of the items. The order of the items is stored on the tensors' device.
  BatchRows(const EpochItems& items, int64_t index);

  // Returns the batch's rows of `tensor`, either as a view or as a copy of the rows in the given
  // order.
  torch::Tensor of(const torch::Tensor& tensor) const;

 private:
  int64_t start_, length_;
  torch::Tensor rows_ = {};
};

}  // namespace detail

/// Splits any number of tensors into batches, as `Batches` does for two tensors:
///
///     for (const auto& x : TensorBatches(images, {.batch_size = 32}))
///     for (const auto& [ids, mask, label] : TensorBatches(std::tuple(ids, mask, labels)))
///
/// A batch has the same type as the input: a tensor, or a tuple, a vector, or any other type in
/// which `nn::TensorTree` finds tensors. Row i of each tensor belongs to example i. Views, row
/// order, epochs, and samplers work as in `Batches`. Python: `DataLoader` over a `TensorDataset`.
template <class Batch>
class TensorBatches : public detail::LoaderBase {
  static_assert(
      nn::TensorTree<Batch>::any,
      "sconce::data::TensorBatches: expected a tensor, a std::tuple or std::vector of tensors, "
      "or a type in which sconce::nn::TensorTree finds tensors");

 public:
  using Iterator = LoopIterator<Batch>;  ///< iterator type of a loop

  /// Stores the tensors without copying them. Tensors with no rows yield no batches.
  /// @throw c10::Error if:
  /// - there are no tensors, or a tensor is undefined or 0-dim;
  /// - two tensors differ in their first dimension or device;
  /// - `batch_size` is below 1;
  /// - the sampler was created for a different number of rows, or is combined with `shuffle`.
  explicit TensorBatches(Batch tensors, BatchesOptions options = {})
      : LoaderBase(caller, detail::data_loader_options(std::move(options)), checked_rows(tensors)),
        tensors_(std::move(tensors)) {}

  /// Returns the tensors from which the batches are taken. Python: `loader.dataset`.
  const Batch& dataset() const { return tensors_; }

  /// Starts the next epoch, like `Batches::begin()`.
  /// @throw c10::Error if the sampler returns a row outside the tensors.
  Iterator begin() const { return begin(0, take_epoch()); }

  /// Starts epoch `epoch` at batch `batch`, like `Batches::begin(batch, epoch)`.
  /// @throw c10::Error in the same cases as above, if `batch` is not between 0 and `size()`, or if
  /// `epoch` is negative.
  Iterator begin(int64_t batch, int64_t epoch) const {
    detail::EpochItems items = epoch_items(batch, epoch);
    if (items.order.defined()) items.order = items.order.to(first_of(tensors_).device());
    const auto make = [tensors = tensors_, items](int64_t index, const std::stop_token&) {
      const detail::BatchRows rows(items, index);
      Batch batch_of_rows = tensors;
      nn::for_each_tensor(batch_of_rows, [&](torch::Tensor& tensor) { tensor = rows.of(tensor); });
      return detail::wrap_batch(std::move(batch_of_rows));
    };
    return Iterator({make}, {.first = batch, .last = size(), .epoch = epoch});
  }

 private:
  static constexpr auto caller = "sconce::data::TensorBatches";

  static torch::Tensor first_of(const Batch& tensors) {
    torch::Tensor first;
    nn::for_each_tensor(tensors, [&](const torch::Tensor& tensor) {
      if (!first.defined()) first = tensor;
    });
    return first;
  }

  static int64_t checked_rows(const Batch& tensors) {
    const torch::Tensor first = first_of(tensors);
    TORCH_CHECK(first.defined(), caller, ": expected a tensor, got none");
    int64_t number = 0;
    nn::for_each_tensor(tensors, [&](const torch::Tensor& tensor) {
      detail::check_rows(caller, c10::str("tensor ", number++), tensor, first, "the first");
    });
    return first.size(0);
  }

  Batch tensors_;
};

}  // namespace sconce::data
