#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// Optional arguments for `clip_grad_norm_`, with the same names and defaults as in Python.
struct ClipGradOptions {
  double norm_type = 2.0;           ///< order p of the norm; infinity means the maximum norm
  bool error_if_nonfinite = false;  ///< whether to throw if the norm is inf or NaN; waits for the
                                    ///< device
};

/// Clips the gradients of `parameters` in place so that their norm is at most `max_norm`. The norm
/// is computed over all gradients together, as if they were concatenated into a single vector.
/// Returns the norm before clipping as a 0-dim tensor on the first gradient's device.
///
/// Unlike LibTorch's `torch::nn::utils::clip_grad_norm_`, this function does not copy values to the
/// host, so the host does not wait if all gradients are on GPUs. Parameters without a gradient are
/// skipped. If there are no gradients, the returned norm is 0 and is on the CPU. Gradients may be
/// on different devices and have different types.
/// Python: `torch.nn.utils.clip_grad_norm_`.
/// @throw c10::Error if `error_if_nonfinite` is set and the norm is inf or NaN. In that case, the
/// gradients are unchanged.
torch::Tensor clip_grad_norm_(const std::vector<torch::Tensor>& parameters, double max_norm,
                              ClipGradOptions options = {});

/// Clamps the gradients of `parameters` elementwise to [-clip_value, clip_value], in place.
/// Python: `torch.nn.utils.clip_grad_value_`.
void clip_grad_value_(const std::vector<torch::Tensor>& parameters, double clip_value);

}  // namespace sconce::nn
