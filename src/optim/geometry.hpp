#pragma once

// Where and how parameters lie, which their owners may change between two steps. For the sources of
// this room.

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace sconce::optim {

/// Whether two of the tensors share memory. Of those with gaps it looks at a part.
inline bool share_memory(const std::vector<at::Tensor>& tensors) {
  std::vector<std::pair<const char*, const char*>> ranges;
  for (const auto& tensor : tensors) {
    if (tensor.layout() != at::kStrided) continue;
    const auto* begin = static_cast<const char*>(tensor.const_data_ptr());
    ranges.emplace_back(begin, begin + tensor.nbytes());
  }
  std::sort(ranges.begin(), ranges.end());
  const auto overlap = [](const auto& a, const auto& b) { return a.second > b.first; };
  return std::adjacent_find(ranges.begin(), ranges.end(), overlap) != ranges.end();
}

/// Where and how parameters lie, one after the other in one list, for it is compared at each step.
class Geometries {
 public:
  void clear() { numbers_.clear(); }

  void add(const at::Tensor& tensor) {
    numbers_.push_back(reinterpret_cast<intptr_t>(storage_of(tensor)));
    numbers_.push_back(tensor.dim());
    for (const auto list : {tensor.sizes(), strides_of(tensor)}) {
      numbers_.insert(numbers_.end(), list.begin(), list.end());
    }
  }

  const int64_t* begin() const { return numbers_.data(); }

  /// Whether the tensor lies as the one did whose numbers begin at `next`, which goes on to those
  /// of the one after it, and `grad` has its sizes. Clears `strides_match` if the strides of
  /// `grad`, where it has any, are others.
  static bool matches(const int64_t*& next, const at::Tensor& tensor, const at::Tensor& grad,
                      bool& strides_match) {
    const auto sizes = tensor.sizes();
    const auto grad_sizes = grad.sizes();
    const size_t dim = sizes.size();
    if (next[0] != reinterpret_cast<intptr_t>(storage_of(tensor))) return false;
    if (next[1] != static_cast<int64_t>(dim) || grad_sizes.size() != dim) return false;
    next += 2;
    for (size_t i = 0; i < dim; ++i, ++next) {
      if (sizes[i] != *next || grad_sizes[i] != *next) return false;
    }
    const auto strides = strides_of(tensor);
    const auto grad_strides = strides_of(grad);
    for (size_t i = 0; i < strides.size(); ++i, ++next) {
      if (strides[i] != *next) return false;
      if (i < grad_strides.size() && grad_strides[i] != *next) strides_match = false;
    }
    return true;
  }

 private:
  static const void* storage_of(const at::Tensor& tensor) {
    return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  }
  static at::IntArrayRef strides_of(const at::Tensor& tensor) {
    return tensor.layout() == at::kStrided ? tensor.strides() : at::IntArrayRef();
  }

  std::vector<int64_t> numbers_ = {};
};

}  // namespace sconce::optim
