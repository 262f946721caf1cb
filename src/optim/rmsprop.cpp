#include "sconce/optim/rmsprop.hpp"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/serialize/archive.h>

#include <array>
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

using torch::optim::RMSpropOptions;

struct RMSpropBucket : Bucket {
  RMSpropBucket(const torch::Tensor& parameter, const RMSpropParamState& state)
      : Bucket(parameter),
        has_momentum(state.momentum_buffer.defined()),
        is_centered(state.grad_avg.defined()) {}

  bool takes(const RMSpropParamState& state) const {
    return state.momentum_buffer.defined() == has_momentum &&
           state.grad_avg.defined() == is_centered;
  }

  void add(RMSpropParamState& state) {
    steps.add(state.step);
    square_avgs.push_back(state.square_avg);
    if (has_momentum) momentum_buffers.push_back(state.momentum_buffer);
    if (is_centered) grad_avgs.push_back(state.grad_avg);
  }

  void seal() { steps.seal(); }

  auto lists() { return std::array{&params, &grads, &square_avgs, &momentum_buffers, &grad_avgs}; }

  bool has_momentum;
  bool is_centered;
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

struct RMSprop::Plans {
  std::vector<StepPlan<RMSpropBucket, RMSpropParamState>> of_groups = {};
};

RMSprop::RMSprop(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                 RMSpropOptions defaults, ExtraOptions extra)
    : Optimizer("sconce::optim::RMSprop", param_groups,
                std::make_unique<RMSpropOptions>(std::move(defaults)), std::move(extra),
                Kernels::foreach),
      plans_(std::make_shared<Plans>()) {
  check_construction();
}

RMSprop::RMSprop(std::vector<torch::Tensor> params, RMSpropOptions defaults, ExtraOptions extra)
    : RMSprop(one_group("sconce::optim::RMSprop", std::move(params)), std::move(defaults),
              std::move(extra)) {}

void RMSprop::check(const Options& options) const {
  const auto& o = options_as<const RMSpropOptions>(options, name());
  TORCH_CHECK_VALUE(o.lr() >= 0, name(), ": expected lr >= 0, got ", o.lr());
  TORCH_CHECK_VALUE(o.eps() >= 0, name(), ": expected eps >= 0, got ", o.eps());
  TORCH_CHECK_VALUE(o.momentum() >= 0, name(), ": expected momentum >= 0, got ", o.momentum());
  TORCH_CHECK_VALUE(o.weight_decay() >= 0, name(), ": expected weight_decay >= 0, got ",
                    o.weight_decay());
  TORCH_CHECK_VALUE(o.alpha() >= 0, name(), ": expected alpha >= 0, got ", o.alpha());
}

RMSpropParamState& RMSprop::state_for(size_t group, size_t index) {
  const auto make = [this](const torch::Tensor& parameter) {
    auto fresh = std::make_unique<RMSpropParamState>();
    fresh->step = state_number(parameter, at::zeros({}));
    fresh->square_avg = at::zeros_like(parameter);
    return fresh;
  };
  auto& state = fitting_state(group, index, &RMSpropParamState::square_avg, make);
  const auto& o = options_as<const RMSpropOptions>(param_groups_[group].options(), name());
  const auto& parameter = param_groups_[group].params()[index];
  if (o.momentum() > 0 && !state.momentum_buffer.defined()) {
    state.momentum_buffer = at::zeros_like(parameter);
  }
  if (o.centered() && !state.grad_avg.defined()) state.grad_avg = at::zeros_like(parameter);
  return state;
}

bool RMSprop::prepare_group(size_t index) {
  plans_->of_groups.resize(param_groups_.size());
  const auto& group = param_groups_[index];
  const auto& o = options_as<const RMSpropOptions>(group.options(), name());
  const int variant = (o.momentum() > 0 ? 1 : 0) + (o.centered() ? 2 : 0);
  const auto state_of = [&](size_t i) -> RMSpropParamState& { return state_for(index, i); };
  return plans_->of_groups[index].update(group.params(), state_, variant, state_of);
}

void RMSprop::step_group(size_t index, const Amp& /*amp*/) {
  const auto& o = options_as<const RMSpropOptions>(param_groups_[index].options(), name());
  const ExtraOptions of_group = extra(index);
  for (auto& bucket : plans_->of_groups[index].buckets()) {
    bucket.steps.add_one();
    if (kernels() == Kernels::for_loop) {
      step_for_loop(bucket, o, host_lr(o.lr(), of_group).number, of_group.maximize);
    } else {
      const auto viewed = viewed_as_real(bucket);
      const auto& b = viewed ? *viewed : bucket;
      if (steps_on_device(b.params[0])) {
        step_foreach(b, o, *device_lr(of_group, b.device).tensor, of_group.maximize);
      } else {
        step_foreach(b, o, host_lr(o.lr(), of_group).number, of_group.maximize);
      }
    }
    bucket.grads.clear();
  }
}

void RMSprop::state_replaced() {
  plans_->of_groups.clear();
}

RMSprop::Tensors RMSprop::state_tensors(const ParamState& state) const {
  const auto& s = static_cast<const RMSpropParamState&>(state);
  Tensors tensors = {{"step", s.step.clone()}, {"square_avg", s.square_avg}};
  if (s.momentum_buffer.defined()) tensors["momentum_buffer"] = s.momentum_buffer;
  if (s.grad_avg.defined()) tensors["grad_avg"] = s.grad_avg;
  return tensors;
}

std::unique_ptr<torch::optim::OptimizerParamState> RMSprop::make_state(
    const Tensors& tensors, const torch::Tensor& parameter) const {
  for (const char* key : {"step", "square_avg"}) {
    TORCH_CHECK(tensors.contains(key), name(), ": expected the state of a parameter to have ", key);
  }
  auto state = std::make_unique<RMSpropParamState>();
  state->step = state_number(parameter, tensors.at("step"));
  state->square_avg = copy_for(parameter, tensors, "square_avg");
  state->momentum_buffer = copy_for(parameter, tensors, "momentum_buffer");
  state->grad_avg = copy_for(parameter, tensors, "grad_avg");
  state->owner = StateOwner(parameter);
  return state;
}

void RMSprop::visit_options(Options& options, StateVisitor& state) const {
  auto& o = options_as<RMSpropOptions>(options, name());
  state("lr", o.lr());
  state("momentum", o.momentum(), 0.0);  // states of older PyTorch versions may lack it
  state("alpha", o.alpha());
  state("eps", o.eps());
  state("centered", o.centered(), false);
  state("weight_decay", o.weight_decay());
  state.write_only("capturable", takes_lr_on_device());
}

void RMSprop::save(torch::serialize::OutputArchive& archive) const {
  sync_lr();
  torch::optim::serialize<RMSpropParamState, RMSpropOptions>(archive, *this);
}

void RMSprop::load(torch::serialize::InputArchive& archive) {
  replace_state(
      [&] { torch::optim::serialize<RMSpropParamState, RMSpropOptions>(archive, *this); });
}

void RMSpropParamState::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("step", c10::IValue(step.item<int64_t>()));
  write(archive, "square_avg", square_avg);
  write(archive, "momentum_buffer", momentum_buffer);
  write(archive, "grad_avg", grad_avg);
}

void RMSpropParamState::serialize(torch::serialize::InputArchive& archive) {
  c10::IValue count;
  archive.read("step", count);
  step = at::scalar_tensor(count.toInt(), at::kFloat);
  read(archive, "square_avg", square_avg);
  read(archive, "momentum_buffer", momentum_buffer);
  read(archive, "grad_avg", grad_avg);
}

}  // namespace sconce::optim
