#pragma once

// The three implementations of Adam and AdamW. This is an internal header of src/optim.

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_maximum.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/maximum.h>

#include <cmath>
#include <optional>
#include <vector>

#include "optim/algorithm.hpp"
#include "optim/learning_rate.hpp"
#include "optim/packed_numbers.hpp"
#include "optim/real_views.hpp"
#include "optim/step_plan.hpp"

namespace sconce::optim {

/// The options for Adam and AdamW in a single type. LibTorch uses a separate type for each of the
/// two classes.
struct AdamHyperparameters {
  double lr;                    ///< learning rate
  double beta1;                 ///< decay rate of the average of the gradients
  double beta2;                 ///< decay rate of the average of their squares
  double eps;                   ///< added to the denominator for stability
  double weight_decay;          ///< weight decay coefficient
  bool amsgrad;                 ///< whether to use the maximum of the averages of the squares
  bool decoupled_weight_decay;  ///< true for AdamW: the decay is separate from the gradient
};

/// The tensors of one kernel call.
struct AdamBucket : Bucket {
  using Bucket::Bucket;

  std::vector<torch::Tensor> exp_avgs = {};
  std::vector<torch::Tensor> exp_avg_sqs = {};
  std::vector<torch::Tensor> max_exp_avg_sqs = {};
  PackedNumbers steps = {};
};

/// Updates the tensors with the fused kernel. The step counts must already include this step.
inline void step_fused(AdamBucket& b, const AdamHyperparameters& h, const ExtraOptions& extra,
                       const Amp& amp) {
  match_strides(b);
  const auto grad_scale = to_device(amp.grad_scale, b.device);
  const auto found_inf = to_device(amp.found_inf, b.device);
  const at::TensorList max_exp_avg_sqs = h.amsgrad ? b.max_exp_avg_sqs : at::TensorList();
  with_lr(h.lr, extra.lr, b.device, [&](const auto& lr) {
    call_fused_kernel(b, [&](const auto& part) {
      const auto call = [&](auto&& adam) {
        adam(part(b.params), part(b.grads), part(b.exp_avgs), part(b.exp_avg_sqs),
             part(max_exp_avg_sqs), part(b.steps.views()), lr, h.beta1, h.beta2, h.weight_decay,
             h.eps, h.amsgrad, extra.maximize, grad_scale, found_inf);
      };
      if (h.decoupled_weight_decay) {
        call([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
      } else {
        call([](auto&&... arguments) { at::_fused_adam_(arguments...); });
      }
    });
  });
  if (found_inf) b.steps.subtract(*found_inf);  // a skipped step is not counted
}

/// Updates all tensors using operations on lists of tensors.
inline void step_foreach(const AdamBucket& b, const AdamHyperparameters& h, bool maximize) {
  std::vector<torch::Tensor> grads = maximize ? at::_foreach_neg(b.grads) : b.grads;
  if (h.weight_decay != 0) {
    if (h.decoupled_weight_decay) {
      at::_foreach_mul_(b.params, 1 - h.lr * h.weight_decay);
    } else {
      grads = at::_foreach_add(grads, b.params, h.weight_decay);
    }
  }
  at::_foreach_lerp_(b.exp_avgs, grads, 1 - h.beta1);
  at::_foreach_mul_(b.exp_avg_sqs, h.beta2);
  at::_foreach_addcmul_(b.exp_avg_sqs, grads, grads, 1 - h.beta2);

  std::vector<at::Scalar> step_sizes;
  std::vector<at::Scalar> bias_corrections2_sqrt;
  const float* steps = b.steps.on_host();
  for (size_t i = 0; i < b.params.size(); ++i) {
    step_sizes.emplace_back(-(h.lr / (1 - std::pow(h.beta1, steps[i]))));
    bias_corrections2_sqrt.emplace_back(std::pow(1 - std::pow(h.beta2, steps[i]), 0.5));
  }
  if (h.amsgrad) at::_foreach_maximum_(b.max_exp_avg_sqs, b.exp_avg_sqs);
  auto denominators = at::_foreach_sqrt(h.amsgrad ? b.max_exp_avg_sqs : b.exp_avg_sqs);
  at::_foreach_div_(denominators, bias_corrections2_sqrt);
  at::_foreach_add_(denominators, h.eps);
  at::_foreach_addcdiv_(b.params, b.exp_avgs, denominators, step_sizes);
}

/// Updates the tensors one at a time. As in Python, the weight decay uses complex arithmetic, which
/// may round differently than arithmetic on real views.
inline void step_for_loop(const AdamBucket& b, const AdamHyperparameters& h, const LearningRate& lr,
                          bool maximize) {
  const float* steps = b.steps.on_host();
  for (size_t i = 0; i < b.params.size(); ++i) {
    torch::Tensor grad = maximize ? -b.grads[i] : b.grads[i];
    if (h.weight_decay != 0) {
      if (h.decoupled_weight_decay) {
        b.params[i].mul_(lr.decay_factor(h.weight_decay));
      } else {
        grad = grad.add(b.params[i], h.weight_decay);
      }
    }
    grad = as_real(grad);
    const auto exp_avg = as_real(b.exp_avgs[i]);
    const auto exp_avg_sq = as_real(b.exp_avg_sqs[i]);
    exp_avg.lerp_(grad, 1 - h.beta1);
    scale(exp_avg_sq, h.beta2).addcmul_(grad, grad, 1 - h.beta2);
    torch::Tensor second_moment = exp_avg_sq;
    if (h.amsgrad) {
      second_moment = as_real(b.max_exp_avg_sqs[i]);
      at::maximum_out(second_moment, second_moment, exp_avg_sq);
    }
    const double bias_correction2_sqrt = std::pow(1 - std::pow(h.beta2, steps[i]), 0.5);
    const auto denominator = (second_moment.sqrt() / bias_correction2_sqrt).add_(h.eps);
    as_real(b.params[i]).addcdiv_(exp_avg, denominator, -lr.over(1 - std::pow(h.beta1, steps[i])));
  }
}

}  // namespace sconce::optim
