#include "sconce/optim/nadam.hpp"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_foreach_pow.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/tensor.h>

#include <array>
#include <cmath>

#include "optim/algorithm_of.hpp"

namespace sconce::optim {

namespace {

using Tensors = std::vector<torch::Tensor>;

struct NAdamBucket : Bucket {
  using Bucket::Bucket;

  Tensors exp_avgs = {};
  Tensors exp_avg_sqs = {};
  PackedNumbers steps = {};
  PackedNumbers mu_products = {};
};

// The factors for updating one parameter.
struct NAdamFactors {
  double bias_correction2;
  double grad_factor;     // factor of the gradient term
  double exp_avg_factor;  // factor of the running average term
};

// Multiplies each running product of momenta by the momentum for this step, and returns the
// factors.
std::vector<NAdamFactors> factors_on_host(const NAdamBucket& b, const NAdamOptions& o,
                                          const LearningRate& lr) {
  const auto [beta1, beta2] = o.betas();
  const auto momentum = [beta1 = beta1, &o](double step) {
    return beta1 * (1 - 0.5 * std::pow(0.96, step * o.momentum_decay()));
  };
  const float* steps = b.steps.on_host();
  std::vector<double> mus;
  for (size_t i = 0; i < b.params.size(); ++i) mus.push_back(momentum(steps[i]));
  b.mu_products.all().mul_(at::tensor(mus, b.mu_products.all().options()));
  const float* products = b.mu_products.on_host();
  std::vector<NAdamFactors> factors;
  for (size_t i = 0; i < b.params.size(); ++i) {
    const double step = steps[i], product = products[i], next = momentum(step + 1);
    factors.push_back({1 - std::pow(beta2, step), -lr.times_over(1 - mus[i], 1 - product),
                       -lr.times_over(next, 1 - product * next)});
  }
  return factors;
}

// Updates the running averages. Returns the gradients, plus the weight decay if it is not
// decoupled.
Tensors update_means(const NAdamBucket& b, const NAdamOptions& o, const LearningRate& lr,
                     bool maximize) {
  const auto [beta1, beta2] = o.betas();
  Tensors grads = maximize ? at::_foreach_neg(b.grads) : b.grads;
  if (o.weight_decay() != 0) {
    if (!o.decoupled_weight_decay()) {
      grads = at::_foreach_add(grads, b.params, o.weight_decay());
    } else if (lr.tensor) {
      at::_foreach_mul_(b.params, lr.decay_factor(o.weight_decay()));
    } else {
      at::_foreach_mul_(b.params, 1 - lr.number * o.weight_decay());
    }
  }
  at::_foreach_lerp_(b.exp_avgs, grads, 1 - beta1);
  at::_foreach_mul_(b.exp_avg_sqs, beta2);
  at::_foreach_addcmul_(b.exp_avg_sqs, grads, grads, 1 - beta2);
  return grads;
}

void step_foreach(const NAdamBucket& b, const NAdamOptions& o, const LearningRate& lr,
                  bool maximize) {
  const Tensors grads = update_means(b, o, lr, maximize);
  std::vector<at::Scalar> corrections, grad_factors, exp_avg_factors;
  for (const auto& factors : factors_on_host(b, o, {lr.number, {}})) {
    corrections.emplace_back(std::pow(factors.bias_correction2, 0.5));
    grad_factors.emplace_back(factors.grad_factor);
    exp_avg_factors.emplace_back(factors.exp_avg_factor);
  }
  const Tensors denominators = at::_foreach_sqrt(b.exp_avg_sqs);
  at::_foreach_div_(denominators, corrections);
  at::_foreach_add_(denominators, o.eps());
  at::_foreach_addcdiv_(b.params, grads, denominators, grad_factors);
  at::_foreach_addcdiv_(b.params, b.exp_avgs, denominators, exp_avg_factors);
}

// Converts exponents to the momenta for a step, as Python does with `capturable`.
Tensors momenta_on_device(at::TensorList exponents, double beta1) {
  Tensors momenta = at::_foreach_pow(0.96, exponents);
  at::_foreach_mul_(momenta, -0.5);
  at::_foreach_add_(momenta, 1.0);
  at::_foreach_mul_(momenta, beta1);
  return momenta;
}

void step_on_device(const NAdamBucket& b, const NAdamOptions& o, const LearningRate& lr,
                    bool maximize) {
  const auto [beta1, beta2] = o.betas();
  const Tensors grads = update_means(b, o, lr, maximize);
  const Tensors denominators = at::_foreach_sqrt(b.exp_avg_sqs);
  const Tensors exponents = at::_foreach_mul(b.steps.views(), o.momentum_decay());
  const Tensors grad_factors = momenta_on_device(exponents, beta1);
  at::_foreach_add_(exponents, o.momentum_decay());
  const Tensors exp_avg_factors = momenta_on_device(exponents, beta1);
  const Tensors corrections = at::_foreach_pow(beta2, b.steps.views());
  at::_foreach_sub_(corrections, 1.0);
  at::_foreach_neg_(corrections);
  at::_foreach_sqrt_(corrections);
  at::_foreach_mul_(b.mu_products.views(), grad_factors);
  at::_foreach_div_(denominators, corrections);
  at::_foreach_add_(denominators, o.eps());

  at::_foreach_sub_(grad_factors, 1.0);
  at::_foreach_mul_(grad_factors, *lr.tensor);
  Tensors divisors = at::_foreach_sub(b.mu_products.views(), 1.0);
  at::_foreach_neg_(divisors);
  at::_foreach_div_(grad_factors, divisors);
  divisors = at::_foreach_mul(b.mu_products.views(), exp_avg_factors);
  at::_foreach_mul_(exp_avg_factors, *lr.tensor);
  at::_foreach_sub_(divisors, 1.0);
  at::_foreach_div_(exp_avg_factors, divisors);
  const Tensors numerators = at::_foreach_mul(grad_factors, grads);
  at::_foreach_addcmul_(numerators, exp_avg_factors, b.exp_avgs);
  at::_foreach_addcdiv_(b.params, numerators, denominators);
}

// Updates the tensors one at a time.
void step_for_loop(const NAdamBucket& b, const NAdamOptions& o, const LearningRate& lr,
                   bool maximize) {
  const auto [beta1, beta2] = o.betas();
  const auto factors = factors_on_host(b, o, lr);
  for (size_t i = 0; i < b.params.size(); ++i) {
    const auto param = as_real(b.params[i]);
    auto grad = as_real(maximize ? -b.grads[i] : b.grads[i]);
    if (o.weight_decay() != 0) {
      if (o.decoupled_weight_decay()) {
        param.mul_(lr.decay_factor(o.weight_decay()));
      } else {
        grad = grad.add(param, o.weight_decay());
      }
    }
    const auto exp_avg = as_real(b.exp_avgs[i]);
    const auto exp_avg_sq = as_real(b.exp_avg_sqs[i]);
    exp_avg.lerp_(grad, 1 - beta1);
    scale(exp_avg_sq, beta2).addcmul_(grad, grad, 1 - beta2);
    const auto denominator = (exp_avg_sq / factors[i].bias_correction2).sqrt().add_(o.eps());
    param.addcdiv_(grad, denominator, factors[i].grad_factor);
    param.addcdiv_(exp_avg, denominator, factors[i].exp_avg_factor);
  }
}

}  // namespace

template <>
struct Table<NAdam> {
  using Options = NAdamOptions;
  using State = NAdamParamState;
  using Bucket = NAdamBucket;
  static constexpr const char* name = "sconce::optim::NAdam";
  static constexpr Kernels fastest = Kernels::foreach;
  static constexpr bool has_capturable = true;
  static constexpr std::array fields = {
      count("step", &State::step, &Bucket::steps),
      number("mu_product", &State::mu_product, &Bucket::mu_products, /*first=*/1),
      like_parameter("exp_avg", &State::exp_avg, &Bucket::exp_avgs),
      like_parameter("exp_avg_sq", &State::exp_avg_sq, &Bucket::exp_avg_sqs)};

  static void visit_options(NAdamOptions& o, auto&& visit) {
    visit("lr", o.lr());
    visit("betas", o.betas());
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
    visit("momentum_decay", o.momentum_decay());
    visit("decoupled_weight_decay", o.decoupled_weight_decay(), false);
  }

  static void check(const NAdamOptions& o, const Expect& expect) {
    expect.at_least_0("lr", o.lr());
    expect.at_least_0("eps", o.eps());
    expect.betas(o.betas());
    expect.at_least_0("weight_decay", o.weight_decay());
    expect.at_least_0("momentum_decay", o.momentum_decay());
  }

  static void step(auto& buckets, const Step<NAdamOptions>& s) { step_unfused(buckets, s); }
};

template struct TableOptions<NAdam, NAdamOptions>;
template struct TableParamState<NAdam, NAdamParamState>;
template class OptimizerOf<NAdam, NAdamOptions>;

}  // namespace sconce::optim
