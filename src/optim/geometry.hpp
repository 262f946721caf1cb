#pragma once

// Records the devices, memory, sizes, and strides of parameters, because a program may change them
// between steps. This is an internal header of src/optim.

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace sconce::optim {

/// Returns whether all parameters in the groups are on a device of this type.
inline bool all_are_on(c10::DeviceType type,
                       const std::vector<torch::optim::OptimizerParamGroup>& groups) {
  return std::all_of(groups.begin(), groups.end(), [type](const auto& group) {
    return std::all_of(group.params().begin(), group.params().end(),
                       [type](const auto& parameter) { return parameter.device().type() == type; });
  });
}

/// Returns whether any two tensors share memory. For a tensor with gaps, checks only the first
/// `nbytes()` bytes.
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

/// The addresses, sizes, and strides for a list of tensors, packed into one array. The array is
/// compared in each step.
class Geometries {
 public:
  void add(const at::Tensor& tensor) {
    const at::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    const auto sizes = impl.sizes();
    const auto strides = strides_of(impl);
    numbers_.push_back(storage_of(impl));
    numbers_.push_back(impl.storage_offset());
    numbers_.push_back(static_cast<int64_t>(sizes.size()));
    numbers_.insert(numbers_.end(), sizes.begin(), sizes.end());
    numbers_.insert(numbers_.end(), strides.begin(), strides.end());
  }

  /// Returns whether the tensors have the recorded addresses, sizes, and strides, and whether each
  /// tensor in `grads` has the same sizes. Sets `strides_match` to false if a gradient has
  /// different strides or no strides.
  bool match(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& grads,
             bool& strides_match) const {
    const int64_t* next = numbers_.data();
    for (size_t i = 0; i < tensors.size(); ++i) {
      const at::TensorImpl& impl = *tensors[i].unsafeGetTensorImpl();
      const at::TensorImpl& grad = *grads[i].unsafeGetTensorImpl();
      const auto sizes = impl.sizes();
      const auto strides = strides_of(impl);
      if (*next++ != storage_of(impl)) return false;
      if (*next++ != impl.storage_offset()) return false;
      if (*next++ != static_cast<int64_t>(sizes.size())) return false;
      if (!equal(sizes, next) || !equal(grad.sizes(), sizes)) return false;
      next += sizes.size();
      if (!equal(strides, next)) return false;
      next += strides.size();
      strides_match &= grad.layout() == at::kStrided && equal(grad.strides(), strides);
    }
    return true;
  }

 private:
  static int64_t storage_of(const at::TensorImpl& impl) {
    return reinterpret_cast<intptr_t>(impl.unsafe_storage().unsafeGetStorageImpl());
  }
  static at::IntArrayRef strides_of(const at::TensorImpl& impl) {
    return impl.layout() == at::kStrided ? impl.strides() : at::IntArrayRef();
  }
  static bool equal(at::IntArrayRef list, const int64_t* numbers) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i] != numbers[i]) return false;
    }
    return true;
  }
  static bool equal(at::IntArrayRef a, at::IntArrayRef b) {
    return a.size() == b.size() && equal(a, b.data());
  }

  std::vector<int64_t> numbers_ = {};
};

}  // namespace sconce::optim
