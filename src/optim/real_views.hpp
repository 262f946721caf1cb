#pragma once

// This is an internal header of src/optim.

#include <ATen/core/Tensor.h>
#include <ATen/ops/view_as_real.h>

#include <optional>

namespace sconce::optim {

/// Returns the real view of a complex tensor. Optimizers treat the real and imaginary parts
/// separately.
inline at::Tensor as_real(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor) : tensor;
}

/// Returns the bucket with real views in all its lists, or std::nullopt if its tensors are real.
/// `B::lists()` returns pointers to the lists.
template <class B>
std::optional<B> viewed_as_real(const B& bucket) {
  if (!c10::isComplexType(bucket.dtype)) return {};
  B viewed = bucket;
  for (auto* list : viewed.lists()) {
    for (auto& tensor : *list) tensor = at::view_as_real(tensor);
  }
  return viewed;
}

}  // namespace sconce::optim
