#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include "sconce/fwd.hpp"

namespace sconce::metrics {

/// Checks that preds and target are tensors of real numbers on the same device.
/// @throw c10::Error with the prefix `caller` if they are not.
inline void check_tensors(const torch::Tensor& preds, const torch::Tensor& target,
                          const char* caller) {
  TORCH_CHECK(preds.defined() && target.defined(), caller,
              ": expected preds and target, got an undefined tensor");
  TORCH_CHECK(preds.device() == target.device(), caller,
              ": expected preds and target on the same device, got ", preds.device(), " and ",
              target.device());
  TORCH_CHECK(!preds.is_complex() && !target.is_complex(), caller,
              ": expected real-valued tensors, got ", preds.scalar_type(), " and ",
              target.scalar_type());
}

/// Checks that preds and target are tensors of real numbers, on the same device and with the same
/// sizes. Broadcasting (N, 1) and (N,), for example, would produce N * N pairs.
/// @throw c10::Error with the prefix `caller` if they are not.
inline void check_pair(const torch::Tensor& preds, const torch::Tensor& target,
                       const char* caller) {
  check_tensors(preds, target, caller);
  TORCH_CHECK(preds.sizes() == target.sizes(), caller,
              ": expected preds and target with the same shape, got ", preds.sizes(), " and ",
              target.sizes());
}

}  // namespace sconce::metrics
