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
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/optim/serialize.h>

#include <array>
#include <cmath>
#include <utility>

#include "optim/conversions.hpp"
#include "optim/fitting_state.hpp"
#include "optim/learning_rate.hpp"
#include "optim/one_group.hpp"
#include "optim/packed_numbers.hpp"
#include "optim/real_views.hpp"
#include "optim/step_plan.hpp"
#include "state/state_visitor.hpp"

namespace sconce::optim {

namespace {

using Tensors = std::vector<torch::Tensor>;

struct NAdamBucket : Bucket {
  NAdamBucket(const torch::Tensor& parameter, const NAdamParamState& /*state*/)
      : Bucket(parameter) {}

  static bool takes(const NAdamParamState& /*state*/) { return true; }

  void add(NAdamParamState& state) {
    steps.add(state.step);
    mu_products.add(state.mu_product);
    exp_avgs.push_back(state.exp_avg);
    exp_avg_sqs.push_back(state.exp_avg_sq);
  }

  void seal() {
    steps.seal();
    mu_products.seal();
  }

  auto lists() { return std::array{&params, &grads, &exp_avgs, &exp_avg_sqs}; }

  Tensors exp_avgs = {};
  Tensors exp_avg_sqs = {};
  PackedNumbers steps = {};
  PackedNumbers mu_products = {};
};

// The numbers of one parameter's step.
struct NAdamFactors {
  double bias_correction2;
  double of_grad;     // factor of the gradient's step
  double of_exp_avg;  // factor of the mean's step
};

// Multiplies the products of the momenta by those of this step, and returns the factors.
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

// Updates the means. Returns the gradients, with the weight decay if it is part of them.
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

// Steps with operations on lists of all tensors.
void step_foreach(const NAdamBucket& b, const NAdamOptions& o, const LearningRate& lr,
                  bool maximize) {
  const Tensors grads = update_means(b, o, lr, maximize);
  std::vector<at::Scalar> corrections, of_grads, of_exp_avgs;
  for (const auto& factors : factors_on_host(b, o, {lr.number, {}})) {
    corrections.emplace_back(std::pow(factors.bias_correction2, 0.5));
    of_grads.emplace_back(factors.of_grad);
    of_exp_avgs.emplace_back(factors.of_exp_avg);
  }
  const Tensors denominators = at::_foreach_sqrt(b.exp_avg_sqs);
  at::_foreach_div_(denominators, corrections);
  at::_foreach_add_(denominators, o.eps());
  at::_foreach_addcdiv_(b.params, grads, denominators, of_grads);
  at::_foreach_addcdiv_(b.params, b.exp_avgs, denominators, of_exp_avgs);
}

// Turns exponents into the momenta of a step, as Python does with `capturable`.
Tensors momenta_on_device(at::TensorList exponents, double beta1) {
  Tensors momenta = at::_foreach_pow(0.96, exponents);
  at::_foreach_mul_(momenta, -0.5);
  at::_foreach_add_(momenta, 1.0);
  at::_foreach_mul_(momenta, beta1);
  return momenta;
}

// Does the same on a GPU, and nothing on the host, as Python does with `capturable`.
void step_on_device(const NAdamBucket& b, const NAdamOptions& o, const LearningRate& lr,
                    bool maximize) {
  const auto [beta1, beta2] = o.betas();
  const Tensors grads = update_means(b, o, lr, maximize);
  const Tensors denominators = at::_foreach_sqrt(b.exp_avg_sqs);
  const Tensors exponents = at::_foreach_mul(b.steps.views(), o.momentum_decay());
  const Tensors of_grads = momenta_on_device(exponents, beta1);
  at::_foreach_add_(exponents, o.momentum_decay());
  const Tensors of_exp_avgs = momenta_on_device(exponents, beta1);
  const Tensors corrections = at::_foreach_pow(beta2, b.steps.views());
  at::_foreach_sub_(corrections, 1.0);
  at::_foreach_neg_(corrections);
  at::_foreach_sqrt_(corrections);
  at::_foreach_mul_(b.mu_products.views(), of_grads);
  at::_foreach_div_(denominators, corrections);
  at::_foreach_add_(denominators, o.eps());

  at::_foreach_sub_(of_grads, 1.0);
  at::_foreach_mul_(of_grads, *lr.tensor);
  Tensors divisors = at::_foreach_sub(b.mu_products.views(), 1.0);
  at::_foreach_neg_(divisors);
  at::_foreach_div_(of_grads, divisors);
  divisors = at::_foreach_mul(b.mu_products.views(), of_exp_avgs);
  at::_foreach_mul_(of_exp_avgs, *lr.tensor);
  at::_foreach_sub_(divisors, 1.0);
  at::_foreach_div_(of_exp_avgs, divisors);
  const Tensors numerators = at::_foreach_mul(of_grads, grads);
  at::_foreach_addcmul_(numerators, of_exp_avgs, b.exp_avgs);
  at::_foreach_addcdiv_(b.params, numerators, denominators);
}

// Steps one tensor after another.
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
    param.addcdiv_(grad, denominator, factors[i].of_grad);
    param.addcdiv_(exp_avg, denominator, factors[i].of_exp_avg);
  }
}

}  // namespace

struct NAdam::Plans {
  std::vector<StepPlan<NAdamBucket, NAdamParamState>> of_groups = {};
};

NAdam::NAdam(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
             NAdamOptions defaults, ExtraOptions extra)
    : Optimizer("sconce::optim::NAdam", param_groups,
                std::make_unique<NAdamOptions>(std::move(defaults)), std::move(extra),
                Kernels::foreach),
      plans_(std::make_shared<Plans>()) {
  check_construction();
}

NAdam::NAdam(std::vector<torch::Tensor> params, NAdamOptions defaults, ExtraOptions extra)
    : NAdam(one_group("sconce::optim::NAdam", std::move(params)), std::move(defaults),
            std::move(extra)) {}

void NAdam::check(const Options& options) const {
  const auto& o = options_as<const NAdamOptions>(options, name());
  const auto [beta1, beta2] = o.betas();
  TORCH_CHECK_VALUE(o.lr() >= 0, name(), ": expected lr >= 0, got ", o.lr());
  TORCH_CHECK_VALUE(o.eps() >= 0, name(), ": expected eps >= 0, got ", o.eps());
  TORCH_CHECK_VALUE(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1, name(),
                    ": expected betas in [0, 1), got ", beta1, " and ", beta2);
  TORCH_CHECK_VALUE(o.weight_decay() >= 0, name(), ": expected weight_decay >= 0, got ",
                    o.weight_decay());
  TORCH_CHECK_VALUE(o.momentum_decay() >= 0, name(), ": expected momentum_decay >= 0, got ",
                    o.momentum_decay());
}

bool NAdam::prepare_group(size_t index) {
  plans_->of_groups.resize(param_groups_.size());
  const auto make = [this](const torch::Tensor& parameter) {
    auto fresh = std::make_unique<NAdamParamState>();
    fresh->step = state_number(parameter, at::zeros({}));
    fresh->mu_product = state_number(parameter, at::ones({}));
    fresh->exp_avg = at::zeros_like(parameter);
    fresh->exp_avg_sq = at::zeros_like(parameter);
    return fresh;
  };
  const auto state_of = [&](size_t i) -> NAdamParamState& {
    return fitting_state(index, i, &NAdamParamState::exp_avg, make);
  };
  return plans_->of_groups[index].update(param_groups_[index].params(), state_, /*variant=*/0,
                                         state_of);
}

void NAdam::step_group(size_t index, const Amp& /*amp*/) {
  const auto& o = options_as<const NAdamOptions>(param_groups_[index].options(), name());
  const ExtraOptions of_group = extra(index);
  for (auto& bucket : plans_->of_groups[index].buckets()) {
    bucket.steps.add_one();
    if (kernels() == Kernels::for_loop) {
      step_for_loop(bucket, o, host_lr(o.lr(), of_group), of_group.maximize);
    } else {
      const auto viewed = viewed_as_real(bucket);
      const auto& b = viewed ? *viewed : bucket;
      if (steps_on_device(b.params[0])) {
        step_on_device(b, o, device_lr(of_group, b.device), of_group.maximize);
      } else {
        step_foreach(b, o, host_lr(o.lr(), of_group), of_group.maximize);
      }
    }
    bucket.grads.clear();
  }
}

void NAdam::state_replaced() {
  plans_->of_groups.clear();
}

NAdam::Tensors NAdam::state_tensors(const ParamState& state) const {
  const auto& s = static_cast<const NAdamParamState&>(state);
  return {{"step", s.step.clone()},
          {"mu_product", s.mu_product.clone()},
          {"exp_avg", s.exp_avg},
          {"exp_avg_sq", s.exp_avg_sq}};
}

std::unique_ptr<torch::optim::OptimizerParamState> NAdam::make_state(
    const Tensors& tensors, const torch::Tensor& parameter) const {
  for (const char* key : {"step", "mu_product", "exp_avg", "exp_avg_sq"}) {
    TORCH_CHECK(tensors.contains(key), name(), ": expected the state of a parameter to have ", key);
  }
  auto state = std::make_unique<NAdamParamState>();
  state->step = state_number(parameter, tensors.at("step"));
  state->mu_product = state_number(parameter, tensors.at("mu_product"));
  state->exp_avg = copy_for(parameter, tensors, "exp_avg");
  state->exp_avg_sq = copy_for(parameter, tensors, "exp_avg_sq");
  state->owner = StateOwner(parameter);
  return state;
}

void NAdam::visit_options(Options& options, StateVisitor& state) const {
  auto& o = options_as<NAdamOptions>(options, name());
  state("lr", o.lr());
  state("betas", o.betas());
  state("eps", o.eps());
  state("weight_decay", o.weight_decay());
  state("momentum_decay", o.momentum_decay());
  state("decoupled_weight_decay", o.decoupled_weight_decay(), false);
  state.write_only("capturable", takes_lr_on_device());
}

void NAdam::save(torch::serialize::OutputArchive& archive) const {
  sync_lr();
  torch::optim::serialize<NAdamParamState, NAdamOptions>(archive, *this);
}

void NAdam::load(torch::serialize::InputArchive& archive) {
  replace_state([&] { torch::optim::serialize<NAdamParamState, NAdamOptions>(archive, *this); });
}

void NAdamOptions::serialize(torch::serialize::OutputArchive& archive) const {
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(lr);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(betas);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(eps);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(weight_decay);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(momentum_decay);
  _TORCH_OPTIM_SERIALIZE_TORCH_ARG(decoupled_weight_decay);
}

void NAdamOptions::serialize(torch::serialize::InputArchive& archive) {
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, lr);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(Betas, betas);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, eps);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, weight_decay);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(double, momentum_decay);
  _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(bool, decoupled_weight_decay);
}

void NAdamParamState::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("step", c10::IValue(step.item<int64_t>()));
  write(archive, "mu_product", mu_product.clone());
  write(archive, "exp_avg", exp_avg);
  write(archive, "exp_avg_sq", exp_avg_sq);
}

void NAdamParamState::serialize(torch::serialize::InputArchive& archive) {
  c10::IValue count;
  archive.read("step", count);
  step = at::scalar_tensor(count.toInt(), at::kFloat);
  read(archive, "mu_product", mu_product);
  read(archive, "exp_avg", exp_avg);
  read(archive, "exp_avg_sq", exp_avg_sq);
}

}  // namespace sconce::optim
