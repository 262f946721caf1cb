#pragma once

// The gradients used in a step. This is an internal header of src/optim.

#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_neg.h>

#include <cstddef>
#include <vector>

#include "optim/step_plan.hpp"

namespace sconce::optim {

/// Returns the bucket's gradients, negated for `maximize`, plus the weight decay.
inline std::vector<at::Tensor> decayed_grads(const Bucket& bucket, double weight_decay,
                                             bool maximize) {
  auto grads = maximize ? at::_foreach_neg(bucket.grads) : bucket.grads;
  if (weight_decay != 0) grads = at::_foreach_add(grads, bucket.params, weight_decay);
  return grads;
}

/// Returns one of these gradients. As in Python, the weight decay uses complex arithmetic, which
/// may round differently than arithmetic on real views.
inline at::Tensor decayed_grad(const Bucket& bucket, size_t index, double weight_decay,
                               bool maximize) {
  at::Tensor grad = maximize ? -bucket.grads[index] : bucket.grads[index];
  if (weight_decay != 0) grad = grad.add(bucket.params[index], weight_decay);
  return grad;
}

}  // namespace sconce::optim
