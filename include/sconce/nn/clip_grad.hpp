#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// The rarer options of `clip_grad_norm_`, with Python's names and defaults.
struct ClipOptions {
  double norm_type = 2.0;           ///< the p of the norm; infinity gives the largest magnitude
  bool error_if_nonfinite = false;  ///< throw on a norm of inf or nan, which reads it on the host
};

/// Scales the parameters' gradients in place so that their norm, taken as one vector, is at most
/// `max_norm`, and returns the norm they had: a 0-dim tensor on the first gradient's device.
/// The host reads no value back (LibTorch's own `torch::nn::utils::clip_grad_norm_` does), so where
/// all gradients lie on GPUs it does not wait for them. Parameters without a gradient are passed
/// over; without any gradient the norm is 0 on the CPU. Gradients may lie on several devices and be
/// of several types. Python: `torch.nn.utils.clip_grad_norm_`.
/// @throw c10::Error if `error_if_nonfinite` is set and the norm is inf or nan; the gradients are
/// then as they were.
torch::Tensor clip_grad_norm_(const std::vector<torch::Tensor>& parameters, double max_norm,
                              ClipOptions options = {});

/// Clamps every element of the parameters' gradients in place to [-clip_value, clip_value].
/// Python: `torch.nn.utils.clip_grad_value_`.
void clip_grad_value_(const std::vector<torch::Tensor>& parameters, double clip_value);

}  // namespace sconce::nn
