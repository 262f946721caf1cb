#include "sconce/optim/adamax.hpp"

#include <ATen/ops/_foreach_abs.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_maximum.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_pow.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/maximum.h>

#include <array>
#include <cmath>

#include "optim/algorithm_of.hpp"

namespace sconce::optim {

namespace {

using Tensors = std::vector<torch::Tensor>;

struct AdamaxBucket : Bucket {
  using Bucket::Bucket;

  Tensors exp_avgs = {};
  Tensors exp_infs = {};
  PackedNumbers steps = {};
};

// Updates the running averages and the largest absolute values.
void update(const AdamaxBucket& b, const AdamaxOptions& o, bool maximize) {
  const auto [beta1, beta2] = o.betas();
  Tensors grads = decayed_grads(b, o.weight_decay(), maximize);
  at::_foreach_lerp_(b.exp_avgs, grads, 1 - beta1);
  at::_foreach_mul_(b.exp_infs, beta2);
  grads = at::_foreach_abs(grads);
  at::_foreach_add_(grads, o.eps());
  at::_foreach_maximum_(b.exp_infs, grads);
}

void step_foreach(const AdamaxBucket& b, const AdamaxOptions& o, const LearningRate& lr,
                  bool maximize) {
  update(b, o, maximize);
  const double beta1 = std::get<0>(o.betas());
  const float* steps = b.steps.on_host();
  std::vector<at::Scalar> step_sizes;
  for (size_t i = 0; i < b.params.size(); ++i) {
    step_sizes.emplace_back(-(lr.number / (1 - std::pow(beta1, steps[i]))));
  }
  at::_foreach_addcdiv_(b.params, b.exp_avgs, b.exp_infs, step_sizes);
}

void step_on_device(const AdamaxBucket& b, const AdamaxOptions& o, const LearningRate& lr,
                    bool maximize) {
  update(b, o, maximize);
  const Tensors corrections = at::_foreach_pow(std::get<0>(o.betas()), b.steps.views());
  at::_foreach_sub_(corrections, 1);
  at::_foreach_div_(corrections, *lr.tensor);
  at::_foreach_addcdiv_(b.params, b.exp_avgs, at::_foreach_mul(b.exp_infs, corrections));
}

// Updates the tensors one at a time.
void step_for_loop(const AdamaxBucket& b, const AdamaxOptions& o, const LearningRate& lr,
                   bool maximize) {
  const auto [beta1, beta2] = o.betas();
  const float* steps = b.steps.on_host();
  for (size_t i = 0; i < b.params.size(); ++i) {
    const auto grad = as_real(decayed_grad(b, i, o.weight_decay(), maximize));
    const auto exp_avg = as_real(b.exp_avgs[i]);
    auto exp_inf = as_real(b.exp_infs[i]);
    exp_avg.lerp_(grad, 1 - beta1);
    at::maximum_out(exp_inf, scale(exp_inf, beta2), grad.abs().add_(o.eps()));
    as_real(b.params[i]).addcdiv_(exp_avg, exp_inf, -lr.over(1 - std::pow(beta1, steps[i])));
  }
}

}  // namespace

template <>
struct Table<Adamax> {
  using Options = AdamaxOptions;
  using State = AdamaxParamState;
  using Bucket = AdamaxBucket;
  static constexpr const char* name = "sconce::optim::Adamax";
  static constexpr Kernels fastest = Kernels::foreach;
  static constexpr bool has_capturable = true;
  static constexpr std::array fields = {
      count("step", &State::step, &Bucket::steps),
      like_parameter("exp_avg", &State::exp_avg, &Bucket::exp_avgs),
      like_parameter("exp_inf", &State::exp_inf, &Bucket::exp_infs)};

  static void visit_options(AdamaxOptions& o, auto&& visit) {
    visit("lr", o.lr());
    visit("betas", o.betas());
    visit("eps", o.eps());
    visit("weight_decay", o.weight_decay());
  }

  static void check(const AdamaxOptions& o, const Expect& expect) {
    expect.at_least_0("lr", o.lr());
    expect.at_least_0("eps", o.eps());
    expect.betas(o.betas());
    expect.at_least_0("weight_decay", o.weight_decay());
  }

  static void step(auto& buckets, const Step<AdamaxOptions>& s) { step_unfused(buckets, s); }
};

template struct TableOptions<Adamax, AdamaxOptions>;
template struct TableParamState<Adamax, AdamaxParamState>;
template class OptimizerOf<Adamax, AdamaxOptions>;

}  // namespace sconce::optim
