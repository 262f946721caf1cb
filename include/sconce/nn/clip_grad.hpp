#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// Further arguments of `clip_grad_norm_`, with Python's names and defaults.
struct ClipGradOptions {
  double norm_type = 2.0;           ///< order p of the norm; infinity is the largest magnitude
  bool error_if_nonfinite = false;  ///< throw if the norm is inf or nan; makes the host read it
};

/// Scales the gradients of the parameters in place so that the norm of all of them together, taken
/// as one vector, is at most `max_norm`. Returns the norm before scaling, as a 0-dim tensor on the
/// device of the first gradient.
/// The host reads no value back, so if all gradients lie on GPUs it does not wait for them.
/// LibTorch's own `torch::nn::utils::clip_grad_norm_` does read one. Parameters without a gradient
/// are skipped; if there is no gradient at all, the norm is 0, on the CPU. The gradients may have
/// different devices and types. Python: `torch.nn.utils.clip_grad_norm_`.
/// @throw c10::Error if `error_if_nonfinite` is set and the norm is inf or nan. The gradients are
/// unchanged then.
torch::Tensor clip_grad_norm_(const std::vector<torch::Tensor>& parameters, double max_norm,
                              ClipGradOptions options = {});

/// Clamps each element of the parameters' gradients in place to [-clip_value, clip_value].
/// Python: `torch.nn.utils.clip_grad_value_`.
void clip_grad_value_(const std::vector<torch::Tensor>& parameters, double clip_value);

}  // namespace sconce::nn
