#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace sconce::optim {

/// The kernels of an optimizer's step. Python: the arguments `fused` and `foreach`.
enum class Kernels {
  automatic,  ///< fused if there are any and all parameters allow it, or foreach, or the loop
  fused,      ///< one kernel does the whole step: `fused=True`; not all classes have one
  foreach,    ///< each operation runs over a list of tensors: `foreach=True`, Python's on GPUs
  for_loop    ///< each operation runs on each tensor: `foreach=False`, Python's on the CPU
};

/// Options of a whole optimizer that LibTorch's option types do not have.
struct ExtraOptions {
  Kernels kernels = Kernels::automatic;  ///< the kernels, or a choice by the parameters
  bool maximize = false;                 ///< maximize the objective instead of minimizing it

  /// Default learning rate, a tensor with one element. Each group then keeps its rate in a separate
  /// tensor of this type and device. The first group without a rate of its own uses this tensor
  /// itself, and the other groups without one start with its value. Change a group's options, as
  /// schedulers do, and the next step writes them into the group's tensor. Filling this tensor
  /// changes only the group that uses it.
  std::optional<at::Tensor> lr = {};
};

}  // namespace sconce::optim
