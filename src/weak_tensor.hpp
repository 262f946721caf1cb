#pragma once

#include <ATen/core/Tensor.h>

namespace sconce::detail {

/// A non-owning reference to a tensor. As long as the reference exists, no other tensor can reuse
/// the address.
using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

}  // namespace sconce::detail
