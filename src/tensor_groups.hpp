#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace sconce {

/// Tensors grouped by device and type. Foreach kernels accept only tensors from the same group.
using TensorGroups = std::vector<std::vector<at::Tensor>>;

/// Adds the tensor to the group for its device and type, or creates a new group for it.
inline void add_to_group(TensorGroups& groups, const at::Tensor& tensor) {
  auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& other) {
    return other.front().device() == tensor.device() &&
           other.front().scalar_type() == tensor.scalar_type();
  });
  if (group == groups.end()) group = groups.insert(groups.end(), std::vector<at::Tensor>{});
  group->push_back(tensor);
}

/// The tensors that have been added so far. In C++, `parameters()` returns a layer's tensors once
/// for each occurrence of the layer.
using SeenTensors = std::unordered_set<const c10::TensorImpl*>;

}  // namespace sconce
