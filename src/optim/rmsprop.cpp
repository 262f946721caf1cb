#include "sconce/optim/rmsprop.hpp"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_foreach_sqrt.h>

#include <array>

#include "optim/algorithm_of.hpp"

namespace sconce::optim {

namespace {

using torch::optim::RMSpropOptions;

struct RMSpropBucket : Bucket {
  using Bucket::Bucket;

  std::vector<torch::Tensor> square_avgs = {};
  std::vector<torch::Tensor> momentum_buffers = {};
  std::vector<torch::Tensor> grad_avgs = {};
  PackedNumbers steps = {};
};

// Subtracts the steps from the parameters, as Python does if it may read the learning rate.
void subtract(const RMSpropBucket& b, at::TensorList grads, at::TensorList averages, bool momentum,
              double lr) {
  if (momentum) {
    at::_foreach_add_(b.params, b.momentum_buffers, -lr);
  } else {
    at::_foreach_addcdiv_(b.params, grads, averages, -lr);
  }
}

// The same, as Python does with `capturable`.
void subtract(const RMSpropBucket& b, at::TensorList grads, at::TensorList averages, bool momentum,
              const torch::Tensor& lr) {
  if (momentum) {
    at::_foreach_add_(b.params, at::_foreach_mul(b.momentum_buffers, -lr));
  } else {
    at::_foreach_div_(averages, -lr);
    at::_foreach_addcdiv_(b.params, grads, averages);
  }
}

// Steps with operations on lists of all tensors. The learning rate is a number, or a tensor on the
// parameters' GPU.
template <class Lr>
void step_foreach(const RMSpropBucket& b, const RMSpropOptions& o, const Lr& lr, bool maximize) {
  std::vector<torch::Tensor> grads = maximize ? at::_foreach_neg(b.grads) : b.grads;
  if (o.weight_decay() != 0) grads = at::_foreach_add(grads, b.params, o.weight_decay());
  at::_foreach_mul_(b.square_avgs, o.alpha());
  at::_foreach_addcmul_(b.square_avgs, grads, grads, 1 - o.alpha());
  std::vector<torch::Tensor> averages;
  if (o.centered()) {
    at::_foreach_lerp_(b.grad_avgs, grads, 1 - o.alpha());
    averages = at::_foreach_addcmul(b.square_avgs, b.grad_avgs, b.grad_avgs, -1);
    at::_foreach_sqrt_(averages);
  } else {
    averages = at::_foreach_sqrt(b.square_avgs);
  }
  at::_foreach_add_(averages, o.eps());
  const bool momentum = o.momentum() > 0;
  if (momentum) {
    at::_foreach_mul_(b.momentum_buffers, o.momentum());
    at::_foreach_addcdiv_(b.momentum_buffers, grads, averages);
  }
  subtract(b, grads, averages, momentum, lr);
}

// Steps one tensor after another. As in Python, the weight decay uses complex arithmetic, which
// may round differently from arithmetic on real views.
void step_for_loop(const RMSpropBucket& b, const RMSpropOptions& o, double lr, bool maximize) {
  for (size_t i = 0; i < b.params.size(); ++i) {
    torch::Tensor grad = maximize ? -b.grads[i] : b.grads[i];
    if (o.weight_decay() != 0) grad = grad.add(b.params[i], o.weight_decay());
    grad = as_real(grad);
    const auto param = as_real(b.params[i]);
    const auto square_avg = as_real(b.square_avgs[i]);
    scale(square_avg, o.alpha()).addcmul_(grad, grad, 1 - o.alpha());
    torch::Tensor average;
    if (o.centered()) {
      const auto grad_avg = as_real(b.grad_avgs[i]);
      grad_avg.lerp_(grad, 1 - o.alpha());
      average = square_avg.addcmul(grad_avg, grad_avg, -1).sqrt_();
    } else {
      average = square_avg.sqrt();
    }
    average.add_(o.eps());
    if (o.momentum() > 0) {
      const auto buffer = as_real(b.momentum_buffers[i]);
      scale(buffer, o.momentum()).addcdiv_(grad, average);
      param.add_(buffer, -lr);
    } else {
      param.addcdiv_(grad, average, -lr);
    }
  }
}

}  // namespace

template <>
struct Table<RMSprop> {
  using Options = RMSpropOptions;
  using State = RMSpropParamState;
  using Bucket = RMSpropBucket;
  static constexpr const char* name = "sconce::optim::RMSprop";
  static constexpr Kernels fastest = Kernels::foreach;
  static constexpr bool has_capturable = true;
  static constexpr std::array fields = {
      count("step", &State::step, &Bucket::steps),
      like_parameter("square_avg", &State::square_avg, &Bucket::square_avgs),
      like_parameter("momentum_buffer", &State::momentum_buffer, &Bucket::momentum_buffers,
                     Needed::by_options),
      like_parameter("grad_avg", &State::grad_avg, &Bucket::grad_avgs, Needed::by_options)};

  static bool uses(const RMSpropOptions& o, const auto& field) {
    return field.member == &State::grad_avg ? o.centered() : o.momentum() > 0;
  }

  static void visit_options(RMSpropOptions& o, auto&& visit) {
    visit("lr", o.lr());
    visit("momentum", o.momentum(), 0.0);  // states of older PyTorch versions may lack it
    visit("alpha", o.alpha());
    visit("eps", o.eps());
    visit("centered", o.centered(), false);
    visit("weight_decay", o.weight_decay());
  }

  static void check(const RMSpropOptions& o, const Expect& expect) {
    expect.at_least_0("lr", o.lr());
    expect.at_least_0("eps", o.eps());
    expect.at_least_0("momentum", o.momentum());
    expect.at_least_0("weight_decay", o.weight_decay());
    expect.at_least_0("alpha", o.alpha());
  }

  static void step(auto& buckets, const Step<RMSpropOptions>& s) {
    const auto on_host = [&s] { return host_lr(s.options.lr(), s.extra).number; };
    for (auto& bucket : buckets) {
      bucket.steps.add_one();
      if (s.kernels == Kernels::for_loop) {
        step_for_loop(bucket, s.options, on_host(), s.extra.maximize);
        continue;
      }
      const auto viewed = viewed_as_real(bucket);
      const RMSpropBucket& b = viewed ? *viewed : bucket;
      if (s.is_on_device(b)) {
        step_foreach(b, s.options, *device_lr(s.extra, b.device).tensor, s.extra.maximize);
      } else {
        step_foreach(b, s.options, on_host(), s.extra.maximize);
      }
    }
  }
};

template struct TableParamState<RMSprop, RMSpropParamState>;
template class OptimizerOf<RMSprop, RMSpropOptions>;

}  // namespace sconce::optim
