#include "sconce/optim/sgd.hpp"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros_like.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <utility>

#include "optim/conversions.hpp"
#include "optim/one_group.hpp"
#include "optim/step_plan.hpp"
#include "state/state_visitor.hpp"

namespace sconce::optim {

namespace {

using torch::optim::SGDOptions;

struct SgdBucket : Bucket {
  SgdBucket(const torch::Tensor& parameter, const SGDParamState& state)
      : Bucket(parameter),
        has_buffers(state.momentum_buffer.defined()),
        first_step_pending(state.first_step_pending) {}

  bool takes(const SGDParamState& state) const {
    return state.momentum_buffer.defined() == has_buffers &&
           state.first_step_pending.is_same(first_step_pending);
  }

  void add(SGDParamState& state) {
    states.push_back(&state);
    if (has_buffers) buffers.push_back(state.momentum_buffer);
  }

  // Parameters that are no longer stepped together no longer share this tensor. Others keep theirs,
  // whose address a CUDA graph of an earlier step may have.
  void seal() {
    if (!first_step_pending.defined()) return;
    const bool others_share_it = first_step_pending.use_count() > states.size() + 1;
    if (others_share_it) set_first_step_pending(first_step_pending.clone());
  }

  // Gives every parameter its buffer. The plan must be made again afterwards.
  void set_buffers(std::vector<torch::Tensor> values) {
    buffers = std::move(values);
    for (size_t i = 0; i < states.size(); ++i) states[i]->momentum_buffer = buffers[i];
  }

  void set_first_step_pending(const torch::Tensor& value) {
    first_step_pending = value;
    for (auto* state : states) state->first_step_pending = value;
  }

  bool has_buffers;
  torch::Tensor first_step_pending;
  std::vector<SGDParamState*> states = {};
  std::vector<torch::Tensor> buffers = {};
};

// The options of a step of one group.
struct Settings {
  const SGDOptions& options;
  const ExtraOptions& extra;

  bool momentum() const { return options.momentum() != 0; }
};

double host_lr(const Settings& s) {
  return s.extra.lr ? s.extra.lr->item<double>() : s.options.lr();
}

void call_fused(SgdBucket& bucket, const Settings& s, bool is_first_step,
                const std::optional<torch::Tensor>& grad_scale,
                const std::optional<torch::Tensor>& found_inf) {
  const at::TensorList buffers = s.momentum() ? bucket.buffers : at::TensorList();
  with_lr(s.options.lr(), s.extra.lr, bucket.device, [&](const auto& lr) {
    call_fused_kernel(bucket, [&](const auto& part) {
      at::_fused_sgd_(part(bucket.params), part(bucket.grads), part(buffers),
                      s.options.weight_decay(), s.options.momentum(), lr, s.options.dampening(),
                      s.options.nesterov(), s.extra.maximize, is_first_step, grad_scale, found_inf);
    });
  });
}

// Only the device knows whether this is the first step. So both kinds of step are called, and the
// tensor makes the kernel skip at least one of them.
void call_fused_pending(SgdBucket& bucket, const Settings& s,
                        const std::optional<torch::Tensor>& grad_scale,
                        const std::optional<torch::Tensor>& found_inf) {
  const auto& pending = bucket.first_step_pending;
  const auto not_pending = 1 - pending;
  call_fused(bucket, s, /*is_first_step=*/true, grad_scale,
             found_inf ? at::maximum(not_pending, *found_inf) : not_pending);
  call_fused(bucket, s, /*is_first_step=*/false, grad_scale,
             found_inf ? at::maximum(pending, *found_inf) : pending);
  if (found_inf) {
    pending.mul_(*found_inf);
  } else {
    bucket.set_first_step_pending({});
  }
}

void step_fused(SgdBucket& bucket, const Settings& s, const torch::Tensor& grad_scale_anywhere,
                const torch::Tensor& found_inf_anywhere) {
  match_strides(bucket);
  const auto grad_scale = to_device(grad_scale_anywhere, bucket.device);
  const auto found_inf = to_device(found_inf_anywhere, bucket.device);
  if (bucket.first_step_pending.defined() && s.momentum()) {
    return call_fused_pending(bucket, s, grad_scale, found_inf);
  }
  const bool is_first_step = s.momentum() && !bucket.has_buffers;
  if (is_first_step) {
    std::vector<torch::Tensor> zeros;
    for (const auto& param : bucket.params) zeros.push_back(at::zeros_like(param));
    bucket.set_buffers(std::move(zeros));
  }
  call_fused(bucket, s, is_first_step, grad_scale, found_inf);
  // Without dampening, a step with a buffer of zeros equals a first step.
  if (is_first_step && found_inf && s.options.dampening() != 0) {
    bucket.set_first_step_pending(found_inf->clone());
  }
}

// If a parameter has no momentum yet, Python updates the momenta one by one, which rounds 16-bit
// types differently: `one_by_one`.
void step_foreach(SgdBucket& bucket, const Settings& s, bool one_by_one) {
  std::vector<torch::Tensor> updates = bucket.grads;
  if (s.extra.maximize) updates = at::_foreach_neg(updates);
  if (s.options.weight_decay() != 0) {
    updates = at::_foreach_add(updates, bucket.params, s.options.weight_decay());
  }
  if (s.momentum()) {
    if (bucket.has_buffers && one_by_one) {
      for (size_t i = 0; i < updates.size(); ++i) {
        scale(bucket.buffers[i], s.options.momentum()).add_(updates[i], 1 - s.options.dampening());
      }
    } else if (bucket.has_buffers) {
      at::_foreach_mul_(bucket.buffers, s.options.momentum());
      at::_foreach_add_(bucket.buffers, updates, 1 - s.options.dampening());
    } else {
      std::vector<torch::Tensor> clones;
      for (const auto& update : updates) clones.push_back(update.clone());
      bucket.set_buffers(std::move(clones));
    }
    updates = s.options.nesterov() ? at::_foreach_add(updates, bucket.buffers, s.options.momentum())
                                   : bucket.buffers;
  }
  at::_foreach_add_(bucket.params, updates, -host_lr(s));
}

void step_for_loop(SgdBucket& bucket, const Settings& s) {
  const double lr = host_lr(s);
  std::vector<torch::Tensor> buffers = bucket.buffers;
  for (size_t i = 0; i < bucket.params.size(); ++i) {
    const auto& param = bucket.params[i];
    torch::Tensor update = s.extra.maximize ? -bucket.grads[i] : bucket.grads[i];
    if (s.options.weight_decay() != 0) update = update.add(param, s.options.weight_decay());
    if (s.momentum()) {
      if (bucket.has_buffers) {
        scale(buffers[i], s.options.momentum()).add_(update, 1 - s.options.dampening());
      } else {
        buffers.push_back(update.clone());
      }
      update = s.options.nesterov() ? update.add(buffers[i], s.options.momentum()) : buffers[i];
    }
    param.add_(update, -lr);
  }
  if (s.momentum() && !bucket.has_buffers) bucket.set_buffers(std::move(buffers));
}

}  // namespace

struct SGD::Plans {
  std::vector<StepPlan<SgdBucket, SGDParamState>> of_groups = {};
};

SGD::SGD(const std::vector<torch::optim::OptimizerParamGroup>& param_groups, SGDOptions defaults,
         ExtraOptions extra)
    : Optimizer("sconce::optim::SGD", param_groups,
                std::make_unique<SGDOptions>(std::move(defaults)), std::move(extra)),
      plans_(std::make_shared<Plans>()) {
  check_construction();
}

SGD::SGD(std::vector<torch::Tensor> params, SGDOptions defaults, ExtraOptions extra)
    : SGD(one_group("sconce::optim::SGD", std::move(params)), std::move(defaults),
          std::move(extra)) {}

void SGD::check(const Options& options) const {
  const auto& o = options_as<const SGDOptions>(options, name());
  TORCH_CHECK_VALUE(o.lr() >= 0, name(), ": expected lr >= 0, got ", o.lr());
  TORCH_CHECK_VALUE(o.momentum() >= 0, name(), ": expected momentum >= 0, got ", o.momentum());
  TORCH_CHECK_VALUE(o.weight_decay() >= 0, name(), ": expected weight_decay >= 0, got ",
                    o.weight_decay());
  TORCH_CHECK_VALUE(!o.nesterov() || (o.momentum() > 0 && o.dampening() == 0), name(),
                    ": expected nesterov with momentum > 0 and dampening 0, got momentum ",
                    o.momentum(), " and dampening ", o.dampening());
}

SGDParamState& SGD::state_for(size_t group, size_t index) {
  const auto& parameter = param_groups_[group].params()[index];
  const auto found = state_.find(parameter.unsafeGetTensorImpl());
  auto* state = found == state_.end() ? nullptr : static_cast<SGDParamState*>(found->second.get());
  const bool fits = state_fits(group, index, state ? state->momentum_buffer : torch::Tensor());
  if (!state) {
    auto fresh = std::make_unique<SGDParamState>();
    state = fresh.get();
    state_[parameter.unsafeGetTensorImpl()] = std::move(fresh);
  } else if (!fits) {
    state->momentum_buffer = like_parameter(parameter, state->momentum_buffer);
    if (state->first_step_pending.defined()) {
      state->first_step_pending = state->first_step_pending.to(parameter.device());
    }
  }
  state->owner = StateOwner(parameter);  // also for a state that was loaded
  return *state;
}

bool SGD::prepare_group(size_t index) {
  plans_->of_groups.resize(param_groups_.size());
  const auto& group = param_groups_[index];
  const bool momentum = options_as<const SGDOptions>(group.options(), name()).momentum() != 0;
  const auto state_of = [&](size_t i) -> SGDParamState& { return state_for(index, i); };
  return plans_->of_groups[index].update(group.params(), state_, momentum, state_of);
}

void SGD::step_group(size_t index, const Amp& amp) {
  const auto& options = param_groups_[index].options();
  const ExtraOptions of_group = extra(index);
  const Settings s = {options_as<const SGDOptions>(options, name()), of_group};
  auto& plan = plans_->of_groups[index];
  bool changed = false;
  for (auto& bucket : plan.buckets()) {
    const bool sparse = bucket.has_sparse_grad;
    if (kernels() == Kernels::fused && !sparse) {
      const bool was_pending = bucket.first_step_pending.defined();
      step_fused(bucket, s, amp.grad_scale, amp.found_inf);
      changed |= was_pending != bucket.first_step_pending.defined();
    } else if (kernels() == Kernels::foreach && !sparse) {
      const auto begins = [&](const SgdBucket& other) {
        return !other.has_buffers && other.device == bucket.device && other.dtype == bucket.dtype;
      };
      step_foreach(bucket, s, std::any_of(plan.buckets().begin(), plan.buckets().end(), begins));
    } else {
      step_for_loop(bucket, s);
    }
    changed |= s.momentum() && !bucket.has_buffers;
    bucket.grads.clear();
  }
  if (changed) plan.forget();
}

void SGD::state_replaced() {
  plans_->of_groups.clear();
}

SGD::Tensors SGD::state_tensors(const ParamState& state) const {
  const auto& s = static_cast<const SGDParamState&>(state);
  if (!s.momentum_buffer.defined()) return {};
  const bool pending = s.first_step_pending.defined() && s.first_step_pending.item<float>() == 1;
  return pending ? Tensors{} : Tensors{{"momentum_buffer", s.momentum_buffer}};
}

std::unique_ptr<torch::optim::OptimizerParamState> SGD::make_state(
    const Tensors& tensors, const torch::Tensor& parameter) const {
  auto state = std::make_unique<SGDParamState>();
  state->momentum_buffer = copy_for(parameter, tensors, "momentum_buffer");
  state->owner = StateOwner(parameter);
  return state;
}

void SGD::visit_options(Options& options, StateVisitor& state) const {
  auto& o = options_as<SGDOptions>(options, name());
  state("lr", o.lr());
  state("momentum", o.momentum());
  state("dampening", o.dampening());
  state("weight_decay", o.weight_decay());
  state("nesterov", o.nesterov(), false);
}

void SGD::save(torch::serialize::OutputArchive& archive) const {
  sync_lr();
  torch::optim::serialize<SGDParamState, SGDOptions>(archive, *this);
}

void SGD::load(torch::serialize::InputArchive& archive) {
  replace_state([&] { torch::optim::serialize<SGDParamState, SGDOptions>(archive, *this); });
}

void SGDParamState::serialize(torch::serialize::OutputArchive& archive) const {
  const bool pending = first_step_pending.defined() && first_step_pending.item<float>() == 1;
  if (!pending) write(archive, "momentum_buffer", momentum_buffer);
}

void SGDParamState::serialize(torch::serialize::InputArchive& archive) {
  read(archive, "momentum_buffer", momentum_buffer);
}

}  // namespace sconce::optim
