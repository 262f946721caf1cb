#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace sconce::optim {

/// The kernels that run an optimizer's step.
/// Python: the `fused` and `foreach` arguments.
enum class Kernels {
  automatic,  ///< fused if available and supported by all parameters, otherwise foreach, otherwise
              ///< the loop
  fused,      ///< one kernel runs the whole step: `fused=True`; not available for all classes
  foreach,  ///< each operation runs on a list of tensors: `foreach=True`, Python's default on GPUs
  for_loop  ///< each operation runs on one tensor: `foreach=False`, Python's default on the CPU
};

/// Optimizer-wide options that are not part of LibTorch's option types.
struct ExtraOptions {
  Kernels kernels = Kernels::automatic;  ///< which kernels to use
  bool maximize = false;                 ///< whether to maximize the objective instead of
                                         ///< minimizing it

  /// Default learning rate, as a one-element tensor. If set, each group stores its learning rate in
  /// a separate tensor with the same type and device. The first group that does not specify a
  /// learning rate uses this tensor itself. Every other group that does not specify a learning rate
  /// starts with the tensor's value. When you or a scheduler changes the learning rate in a group's
  /// options, the next step writes the new learning rate to the group's tensor. Filling this tensor
  /// changes the learning rate only for the group that uses the tensor.
  std::optional<at::Tensor> lr = {};
};

}  // namespace sconce::optim
