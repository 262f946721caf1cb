#include "simgpu/kernels/rows.hpp"

#include <algorithm>

namespace simgpu {

namespace {

// Limits the number of rows, because each call searches the access history once per row.
constexpr size_t max_rows = 1024;

struct Dimension {
  size_t stride = 0;  // in bytes
  size_t size = 0;
};

// Returns the dimensions from innermost to outermost, omitting dimensions of size 1 and dimensions
// with stride 0.
std::vector<Dimension> dimensions_of(const at::Tensor& tensor) {
  std::vector<Dimension> dimensions;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    if (tensor.size(i) == 1 || tensor.stride(i) == 0) continue;
    dimensions.push_back({static_cast<size_t>(tensor.stride(i)) * tensor.dtype().itemsize(),
                          static_cast<size_t>(tensor.size(i))});
  }
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  return dimensions;
}

// Merges dimensions into a single row, starting with the innermost dimension. Stops at the first
// dimension that would leave a gap, unless more than `max_rows` rows would remain. Returns the
// number of bytes per row.
size_t take_row(std::vector<Dimension>& dimensions, size_t itemsize) {
  size_t num_rows = 1;
  for (const auto& dimension : dimensions) num_rows *= dimension.size;
  size_t row = itemsize;
  auto outer = dimensions.begin();
  for (; outer != dimensions.end() && (outer->stride <= row || num_rows > max_rows); ++outer) {
    row += (outer->size - 1) * outer->stride;
    num_rows /= outer->size;
  }
  dimensions.erase(dimensions.begin(), outer);
  return row;
}

std::vector<size_t> starts_of_rows(const std::vector<Dimension>& dimensions) {
  std::vector<size_t> starts = {0};
  for (const auto& [stride, size] : dimensions) {
    const auto count = starts.size();
    for (size_t i = count; i < count * size; ++i) starts.push_back(starts[i - count] + stride);
  }
  return starts;
}

}  // namespace

void add_accesses(std::vector<Access>& accesses, const at::Tensor& tensor, bool writes) {
  if (tensor.numel() == 0) return;
  const auto itemsize = tensor.dtype().itemsize();
  const auto* data = static_cast<const char*>(tensor.storage().data()) +
                     static_cast<size_t>(tensor.storage_offset()) * itemsize;
  if (tensor.is_non_overlapping_and_dense()) {
    accesses.push_back({data, tensor.nbytes(), writes});
    return;
  }
  auto dimensions = dimensions_of(tensor);
  const auto row = take_row(dimensions, itemsize);
  const auto starts = starts_of_rows(dimensions);
  for (const auto start : starts) accesses.push_back({data + start, row, writes, starts.size()});
}

}  // namespace simgpu
