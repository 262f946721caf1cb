#include "sconce/optim/rmsprop.hpp"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
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

// Subtracts the updates from the parameters, as Python does if it can read the learning rate on the
// host.
void subtract(const RMSpropBucket& b, at::TensorList grads, at::TensorList averages, bool momentum,
              double lr) {
  if (momentum) {
    at::_foreach_add_(b.params, b.momentum_buffers, -lr);
  } else {
    at::_foreach_addcdiv_(b.params, grads, averages, -lr);
  }
}

// Subtracts the updates from the parameters, as Python does with `capturable`.
void subtract(const RMSpropBucket& b, at::TensorList grads, at::TensorList averages, bool momentum,
              const torch::Tensor& lr) {
  if (momentum) {
    at::_foreach_add_(b.params, at::_foreach_mul(b.momentum_buffers, -lr));
  } else {
    at::_foreach_div_(averages, -lr);
    at::_foreach_addcdiv_(b.params, grads, averages);
  }
}

// The learning rate is a number, or a tensor on the parameters' GPU.
template <class Lr>
void step_lists(const RMSpropBucket& b, const RMSpropOptions& o, const Lr& lr, bool maximize) {
  const auto grads = decayed_grads(b, o.weight_decay(), maximize);
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

void step_foreach(const RMSpropBucket& b, const RMSpropOptions& o, const LearningRate& lr,
                  bool maximize) {
  step_lists(b, o, lr.number, maximize);
}

void step_on_device(const RMSpropBucket& b, const RMSpropOptions& o, const LearningRate& lr,
                    bool maximize) {
  step_lists(b, o, *lr.tensor, maximize);
}

// Updates the tensors one at a time.
void step_for_loop(const RMSpropBucket& b, const RMSpropOptions& o, const LearningRate& lr,
                   bool maximize) {
  for (size_t i = 0; i < b.params.size(); ++i) {
    const auto grad = as_real(decayed_grad(b, i, o.weight_decay(), maximize));
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
      param.add_(buffer, -lr.number);
    } else {
      param.addcdiv_(grad, average, -lr.number);
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
    visit("momentum", o.momentum(), 0.0);  // may be missing in states from older PyTorch versions
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

  static void step(auto& buckets, const Step<RMSpropOptions>& s) { step_unfused(buckets, s); }
};

template struct TableParamState<RMSprop, RMSpropParamState>;
template class OptimizerOf<RMSprop, RMSpropOptions>;

}  // namespace sconce::optim
