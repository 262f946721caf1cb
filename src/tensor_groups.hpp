#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace sconce {

/// Tensors by device and type. A foreach kernel takes only those of one group.
using TensorGroups = std::vector<std::vector<at::Tensor>>;

/// Adds the tensor to the group of its device and type, or as the first of a new group.
inline void add_to_group(TensorGroups& groups, const at::Tensor& tensor) {
  auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& other) {
    return other.front().device() == tensor.device() &&
           other.front().scalar_type() == tensor.scalar_type();
  });
  if (group == groups.end()) group = groups.insert(groups.end(), std::vector<at::Tensor>{});
  group->push_back(tensor);
}

/// The tensors seen so far. In C++ `parameters()` lists the tensors of a layer each time the layer
/// occurs.
using SeenTensors = std::unordered_set<const c10::TensorImpl*>;

}  // namespace sconce
