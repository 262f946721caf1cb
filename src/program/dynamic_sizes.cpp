#include "program/dynamic_sizes.hpp"

#include <ATen/ops/arange.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cctype>

#include "program/refusals.hpp"

namespace sconce::program::detail {

namespace {

// If the example's size is at least `large`, the function is recorded at smaller sizes, because the
// example may already use every position in a position table. If the example's size is below
// `large`, the function is recorded at larger sizes.
constexpr int64_t large = 6;

constexpr size_t max_sizes = 3;  // the function runs at every combination of two values per size

}  // namespace

void check_name(const std::string& name, const char* what) {
  const auto is_letter = [](char c) {
    return c == '_' || std::isalnum(static_cast<unsigned char>(c));
  };
  const bool fits = !name.empty() && std::all_of(name.begin(), name.end(), is_letter) &&
                    !std::isdigit(static_cast<unsigned char>(name.front()));
  TORCH_CHECK(fits, record_error_prefix, "expected identifiers as names of ", what, ", got '", name,
              "'");
}

DynamicSizes::DynamicSizes(const StateDict& example, const std::vector<DynamicDim>& dims) {
  for (const auto& dim : dims) add(example, dim);
  TORCH_CHECK(names_.size() <= max_sizes, record_error_prefix, "dynamic_shapes: expected at most ",
              max_sizes, " sizes, got ", names_.size());
}

std::vector<int64_t> DynamicSizes::smaller() const {
  auto sizes = example_sizes_;
  for (auto& size : sizes) size = size >= large ? size - 1 : std::max<int64_t>(size, 2);
  return sizes;
}

std::vector<int64_t> DynamicSizes::farther() const {
  auto sizes = example_sizes_;
  for (auto& size : sizes) size = size >= large ? size / 2 : 2 * std::max<int64_t>(size, 2) + 3;
  return sizes;
}

Tensors DynamicSizes::inputs(const StateDict& example, const std::vector<int64_t>& sizes) const {
  Tensors inputs;
  for (size_t i = 0; i < example.size(); ++i) {
    auto input = example[i].value().detach();
    const auto dims = dims_.find(i);
    if (dims != dims_.end()) {
      for (const auto& [dim, size] : dims->second) {
        const auto rows = at::arange(sizes[size] - 1, -1, -1, at::kLong);
        input = input.index_select(dim, rows.remainder(input.size(dim)).to(input.device()));
      }
    }
    inputs.push_back(input.clone());
  }
  return inputs;
}

std::vector<Size> DynamicSizes::shape(size_t index, const at::Tensor& input) const {
  std::vector<Size> shape;
  for (const int64_t size : input.sizes()) shape.emplace_back(size);
  const auto dims = dims_.find(index);
  if (dims == dims_.end()) return shape;
  for (const auto& [dim, size] : dims->second)
    shape[static_cast<size_t>(dim)].terms = {{1, {size}}};
  return shape;
}

void DynamicSizes::add(const StateDict& example, const DynamicDim& given) {
  size_t input = 0;
  while (input < example.size() && example[input].key() != given.input) ++input;
  TORCH_CHECK(input < example.size(), record_error_prefix,
              "dynamic_shapes: expected an input name, got '", given.input, "'");
  const auto& tensor = example[input].value();
  TORCH_CHECK(tensor.dim() > 0, record_error_prefix,
              "dynamic_shapes: expected an input with at least one dimension, got dimension ",
              given.dim, " of the 0-dim tensor '", given.input, "'");
  TORCH_CHECK(given.dim >= 0 && given.dim < tensor.dim(), record_error_prefix,
              "dynamic_shapes: expected a dimension of '", given.input, "' from 0 to ",
              tensor.dim() - 1, ", got ", given.dim);
  TORCH_CHECK(tensor.size(given.dim) > 0, record_error_prefix,
              "dynamic_shapes: expected a nonzero example size in dimension ", given.dim, " of '",
              given.input, "', got 0");
  check_name(given.name, "dynamic sizes");
  const auto found = std::find(names_.begin(), names_.end(), given.name);
  const auto size = static_cast<size_t>(found - names_.begin());
  if (found == names_.end()) {
    names_.push_back(given.name);
    example_sizes_.push_back(tensor.size(given.dim));
  }
  TORCH_CHECK(example_sizes_[size] == tensor.size(given.dim), record_error_prefix,
              "dynamic_shapes: expected ", given.name, " = ", example_sizes_[size], " in '",
              given.input, "' as before, got ", tensor.size(given.dim),
              "; use different names for different sizes");
  const auto first = dims_[input].emplace(given.dim, size).first->second;
  TORCH_CHECK(first == size, record_error_prefix,
              "dynamic_shapes: expected a single size name for dimension ", given.dim, " of '",
              given.input, "', got '", names_[first], "' and '", given.name, "'");
}

}  // namespace sconce::program::detail
