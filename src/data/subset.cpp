#include "sconce/data/subset.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace sconce::data {
namespace {

constexpr auto subset_name = "sconce::data::Subset";

torch::Tensor rows_of_subset(const torch::Tensor& tensor, const std::vector<int64_t>& indices) {
  return tensor.index_select(0, at::tensor(indices, at::kLong).to(tensor.device()));
}

}  // namespace

namespace detail {

SubsetIndices::SubsetIndices(std::vector<int64_t> indices, std::optional<int64_t> source_size)
    : all_(std::make_shared<const std::vector<int64_t>>(std::move(indices))) {
  TORCH_CHECK(source_size, subset_name,
              ": expected a dataset with a known size, got a dataset without a size");
  const auto outside = [&](int64_t index) { return index < 0 || index >= *source_size; };
  const auto found = std::find_if(all_->begin(), all_->end(), outside);
  TORCH_CHECK(found == all_->end(), subset_name, ": expected non-negative indices below ",
              *source_size, " (the size of the source), got ", *found);
}

int64_t SubsetIndices::at(int64_t index) const {
  TORCH_CHECK(index >= 0 && index < size(), subset_name,
              "::get: expected a non-negative index below ", size(), ", got ", index);
  return (*all_)[static_cast<size_t>(index)];
}

int64_t rows_of(const Dataset& dataset) {
  const auto& [data, target] = dataset;
  TORCH_CHECK(data.defined() && target.defined() && data.dim() > 0 && target.dim() > 0, subset_name,
              ": expected data and target with at least one dimension");
  TORCH_CHECK(data.size(0) == target.size(0), subset_name,
              ": expected as many rows in target as in data (", data.size(0), "), got ",
              target.size(0));
  return data.size(0);
}

}  // namespace detail

Subset<Dataset>::Subset(const Dataset& source, std::vector<int64_t> indices)
    : indices_(std::move(indices), detail::rows_of(source)) {
  data = rows_of_subset(source.data, this->indices());
  target = rows_of_subset(source.target, this->indices());
}

}  // namespace sconce::data
