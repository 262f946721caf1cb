#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// Optional arguments of `clip_grad_norm_`, with Python's names and defaults.
struct ClipGradOptions {
  double norm_type = 2.0;           ///< order p of the norm; infinity means the maximum norm
  bool error_if_nonfinite = false;  ///< throw if the norm is inf or nan; makes the host wait for it
};

/// Clips the norm of the gradients of `parameters` in place. The norm is computed over all
/// gradients together, as if they were concatenated into a single vector, and is at most `max_norm`
/// afterwards. Returns the norm before clipping as a 0-dim tensor on the device of the first
/// gradient.
///
/// No value is copied to the host, so if all gradients are on GPUs, the host does not wait for
/// them. LibTorch's `torch::nn::utils::clip_grad_norm_` does copy a value. Parameters without a
/// gradient are skipped. If there are no gradients at all, the norm is 0, on the CPU. Gradients may
/// be on different devices and of different types. Python: `torch.nn.utils.clip_grad_norm_`.
/// @throw c10::Error if `error_if_nonfinite` is set and the norm is inf or nan. The gradients are
/// left unchanged.
torch::Tensor clip_grad_norm_(const std::vector<torch::Tensor>& parameters, double max_norm,
                              ClipGradOptions options = {});

/// Clamps every element of the gradients of `parameters` to [-clip_value, clip_value], in place.
/// Python: `torch.nn.utils.clip_grad_value_`.
void clip_grad_value_(const std::vector<torch::Tensor>& parameters, double clip_value);

}  // namespace sconce::nn
