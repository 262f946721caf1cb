#include "sconce/optim/sgd.hpp"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <utility>

#include "optim/algorithm_of.hpp"

namespace sconce::optim {

namespace {

using torch::optim::SGDOptions;

// With momentum, the first step differs from later steps only if dampening is set. If a scaler
// skips the first step, only the device knows that the step was skipped, and the next step must be
// treated as the first. The `first_step_pending` tensor records whether the first step is still
// pending. This tensor is not a field in the table, because Python has no corresponding key and
// only steps with a scaler need the tensor. All parameters in a bucket share the tensor, because a
// single kernel updates them. The parameter states own the tensor, and the bucket and the plan read
// the tensor from these states.
struct SgdBucket : Bucket {
  using Bucket::Bucket;

  bool takes(const SGDParamState& state) const {
    return state.first_step_pending.is_same(first_step_pending());
  }

  void add(SGDParamState& state) { states.push_back(&state); }

  // Parameters that are no longer updated together must stop sharing the `first_step_pending`
  // tensor. Other parameters keep the tensor, because a CUDA graph from an earlier step may use its
  // address.
  template <class StateMap>
  void seal(const StateMap& all) {
    has_buffers = !buffers.empty();
    const auto pending = first_step_pending();
    if (!pending.defined()) return;
    const auto shares_pending = [&pending](const auto& entry) {
      const auto& state = static_cast<const SGDParamState&>(*entry.second);
      return state.first_step_pending.is_same(pending);
    };
    const auto count = std::count_if(all.begin(), all.end(), shares_pending);
    if (static_cast<size_t>(count) > states.size()) set_first_step_pending(pending.clone());
  }

  // Assigns a momentum buffer to every parameter.
  void set_buffers(std::vector<torch::Tensor> values) {
    buffers = std::move(values);
    for (size_t i = 0; i < states.size(); ++i) states[i]->momentum_buffer = buffers[i];
    is_stale = true;
  }

  const torch::Tensor& first_step_pending() const { return states.front()->first_step_pending; }

  void set_first_step_pending(const torch::Tensor& value) {
    is_stale |= value.defined() != first_step_pending().defined();
    for (auto* state : states) state->first_step_pending = value;
  }

  bool has_buffers = false;  // before this step
  std::vector<SGDParamState*> states = {};
  std::vector<torch::Tensor> buffers = {};
};

// The options for updating one group.
struct Settings : Step<SGDOptions> {
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

// Only the device can determine whether this is the first step. Therefore, the kernel is launched
// twice, once for a first step and once for a later step. Both launches depend on
// `first_step_pending`, so at least one of them skips its update.
void call_fused_pending(SgdBucket& bucket, const Settings& s,
                        const std::optional<torch::Tensor>& grad_scale,
                        const std::optional<torch::Tensor>& found_inf) {
  const auto pending = bucket.first_step_pending();
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

void step_fused(SgdBucket& bucket, const Settings& s) {
  match_strides(bucket);
  const auto grad_scale = to_device(s.amp.grad_scale, bucket.device);
  const auto found_inf = to_device(s.amp.found_inf, bucket.device);
  if (bucket.first_step_pending().defined() && s.momentum()) {
    return call_fused_pending(bucket, s, grad_scale, found_inf);
  }
  const bool is_first_step = s.momentum() && !bucket.has_buffers;
  if (is_first_step) {
    std::vector<torch::Tensor> zeros;
    for (const auto& param : bucket.params) zeros.push_back(at::zeros_like(param));
    bucket.set_buffers(std::move(zeros));
  }
  call_fused(bucket, s, is_first_step, grad_scale, found_inf);
  // Without dampening, a step that starts from a zero momentum buffer is equivalent to a first
  // step.
  if (is_first_step && found_inf && s.options.dampening() != 0) {
    bucket.set_first_step_pending(found_inf->clone());
  }
}

// If any parameter does not have a momentum buffer yet, Python updates the buffers one at a time,
// which rounds 16-bit types differently. `one_by_one` selects this.
void step_foreach(SgdBucket& bucket, const Settings& s, bool one_by_one) {
  std::vector<torch::Tensor> updates =
      decayed_grads(bucket, s.options.weight_decay(), s.extra.maximize);
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
    torch::Tensor update = decayed_grad(bucket, i, s.options.weight_decay(), s.extra.maximize);
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

template <>
struct Table<SGD> {
  using Options = SGDOptions;
  using State = SGDParamState;
  using Bucket = SgdBucket;
  static constexpr const char* name = "sconce::optim::SGD";
  static constexpr Kernels fastest = Kernels::fused;
  static constexpr bool supports_sparse = true;
  static constexpr std::array fields = {like_parameter("momentum_buffer", &State::momentum_buffer,
                                                       &Bucket::buffers, Needed::from_first_step)};

  static bool uses(const SGDOptions& o, const auto& /*field*/) { return o.momentum() != 0; }

  // If a zero momentum buffer were saved, the next step after loading would not be treated as the
  // first.
  static bool is_empty(const State& state) {
    return state.first_step_pending.defined() && state.first_step_pending.item<float>() == 1;
  }

  static void visit_options(SGDOptions& o, auto&& visit) {
    visit("lr", o.lr());
    visit("momentum", o.momentum());
    visit("dampening", o.dampening());
    visit("weight_decay", o.weight_decay());
    visit("nesterov", o.nesterov(), false);
  }

  static void check(const SGDOptions& o, const Expect& expect) {
    expect.at_least_0("lr", o.lr());
    expect.at_least_0("momentum", o.momentum());
    expect.at_least_0("weight_decay", o.weight_decay());
    TORCH_CHECK_VALUE(!o.nesterov() || (o.momentum() > 0 && o.dampening() == 0), name,
                      ": expected nesterov with momentum > 0 and dampening 0, got momentum ",
                      o.momentum(), " and dampening ", o.dampening());
  }

  static void step(auto& buckets, const Step<SGDOptions>& step) {
    const Settings s = {step};
    for (auto& bucket : buckets) {
      const bool sparse = bucket.has_sparse_grad;
      if (s.kernels == Kernels::fused && !sparse) {
        step_fused(bucket, s);
      } else if (s.kernels == Kernels::foreach && !sparse) {
        const auto begins = [&bucket](const auto& other) {
          return !other.has_buffers && other.device == bucket.device && other.dtype == bucket.dtype;
        };
        step_foreach(bucket, s, std::any_of(buckets.begin(), buckets.end(), begins));
      } else {
        step_for_loop(bucket, s);
      }
    }
  }
};

template struct TableParamState<SGD, SGDParamState>;
template class OptimizerOf<SGD, SGDOptions>;

}  // namespace sconce::optim
