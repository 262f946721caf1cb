#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace sconce::optim {

/// The kernels that run an optimizer's step.
/// Python: the arguments `fused` and `foreach`.
enum class Kernels {
  automatic,  ///< fused if available and supported by all parameters, then foreach, then the loop
  fused,      ///< one kernel for the whole step: `fused=True`; not available for all classes
  foreach,  ///< each operation runs on a list of tensors: `foreach=True`, Python's default on GPUs
  for_loop  ///< each operation runs on one tensor: `foreach=False`, Python's default on the CPU
};

/// Options for the whole optimizer that LibTorch's option types lack.
struct ExtraOptions {
  Kernels kernels = Kernels::automatic;  ///< which kernels to use
  bool maximize = false;                 ///< maximize the objective instead of minimizing it

  /// Default learning rate, as a tensor with one element. With it, each group stores its rate in a
  /// separate tensor of this type and on this device. The first group without its own rate uses
  /// this tensor itself, and further groups without one start with its value. When a scheduler, or
  /// you, change a group's options, the next step writes them to the group's tensor. Filling this
  /// tensor changes only the group that uses it.
  std::optional<at::Tensor> lr = {};
};

}  // namespace sconce::optim
