#include "sconce/optim/adagrad.hpp"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <array>
#include <utility>

#include "optim/conversions.hpp"
#include "optim/fitting_state.hpp"
#include "optim/geometry.hpp"
#include "optim/learning_rate.hpp"
#include "optim/one_group.hpp"
#include "optim/packed_numbers.hpp"
#include "optim/real_views.hpp"
#include "optim/step_plan.hpp"
#include "state/state_visitor.hpp"

namespace sconce::optim {

namespace {

using torch::optim::AdagradOptions;

struct AdagradBucket : Bucket {
  AdagradBucket(const torch::Tensor& parameter, const AdagradParamState& /*state*/)
      : Bucket(parameter) {}

  static bool takes(const AdagradParamState& /*state*/) { return true; }

  void add(AdagradParamState& state) {
    steps.add(state.step);
    sums.push_back(state.sum);
  }

  void seal() { steps.seal(); }

  auto lists() { return std::array{&params, &grads, &sums}; }

  std::vector<torch::Tensor> sums = {};
  PackedNumbers steps = {};
};

void step_fused(AdagradBucket& b, const AdagradOptions& o, const ExtraOptions& extra,
                const torch::Tensor& grad_scale_anywhere, const torch::Tensor& found_inf_anywhere) {
  match_strides(b);
  const auto grad_scale = to_device(grad_scale_anywhere, b.device);
  const auto found_inf = to_device(found_inf_anywhere, b.device);
  with_lr(o.lr(), extra.lr, b.device, [&](const auto& lr) {
    call_fused_kernel(b, [&](const auto& part) {
      at::_fused_adagrad_(part(b.params), part(b.grads), part(b.sums), part(b.steps.views()), lr,
                          o.lr_decay(), o.weight_decay(), o.eps(), extra.maximize, grad_scale,
                          found_inf);
    });
  });
  if (found_inf) b.steps.subtract(*found_inf);  // a skipped step does not count
}

// Returns what the learning rate of each parameter is divided by. Step counts on a GPU are read
// only if they matter.
std::vector<double> divisors(const AdagradBucket& b, const AdagradOptions& o) {
  std::vector<double> all(b.params.size(), 1);
  if (o.lr_decay() == 0) return all;
  const auto steps = at::stack(b.steps.views()).cpu();
  const float* counts = steps.const_data_ptr<float>();
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = 1 + (static_cast<double>(counts[i]) - 1) * o.lr_decay();
  }
  return all;
}

// Steps with operations on lists of all tensors.
void step_foreach(const AdagradBucket& b, const AdagradOptions& o, const LearningRate& lr,
                  bool maximize) {
  std::vector<torch::Tensor> grads = maximize ? at::_foreach_neg(b.grads) : b.grads;
  if (o.weight_decay() != 0) grads = at::_foreach_add(grads, b.params, o.weight_decay());
  at::_foreach_addcmul_(b.sums, grads, grads, 1);
  const auto roots = at::_foreach_sqrt(b.sums);
  at::_foreach_add_(roots, o.eps());

  const bool may_overwrite = maximize || o.weight_decay() != 0;
  const auto multiply = [&](const auto& factors) {  // only in place all keep their types
    if (!may_overwrite) {
      grads = at::_foreach_mul(grads, factors);
    } else {
      at::_foreach_mul_(grads, factors);
    }
  };
  std::vector<at::Scalar> numbers;
  std::vector<torch::Tensor> tensors;
  for (const double divisor : divisors(b, o)) {
    if (lr.tensor) {
      tensors.push_back(-lr.tensor->div(at::native::wrapped_scalar_tensor(divisor)));
    } else {
      numbers.emplace_back(-lr.over(divisor));
    }
  }
  lr.tensor ? multiply(tensors) : multiply(numbers);
  at::_foreach_addcdiv_(b.params, grads, roots);
}

void step_sparse(const torch::Tensor& param, const torch::Tensor& uncoalesced,
                 const torch::Tensor& sum, double eps, double lr) {
  const auto grad = uncoalesced.coalesce();  // the square of a sum is not the sum of the squares
  const auto with_values = [&grad](const torch::Tensor& values) {
    const auto tensor = grad.clone()._coalesced_(false);  // as Python's, which is added differently
    tensor._values().copy_(values);
    return tensor;
  };
  sum.add_(with_values(grad._values().pow(2)));
  const auto roots = sum.sparse_mask(grad)._values().sqrt_().add_(eps);
  param.add_(with_values(grad._values() / roots), -lr);
}

// Steps one tensor after another. As in Python, the weight decay uses complex arithmetic, which
// may round differently from arithmetic on real views.
void step_for_loop(const AdagradBucket& b, const AdagradOptions& o, const LearningRate& lr,
                   bool maximize) {
  const auto of_lr = divisors(b, o);
  for (size_t i = 0; i < b.params.size(); ++i) {
    torch::Tensor grad = maximize ? -b.grads[i] : b.grads[i];
    if (grad.is_sparse()) {
      step_sparse(b.params[i], grad, b.sums[i], o.eps(), lr.over(of_lr[i]));
      continue;
    }
    if (o.weight_decay() != 0) grad = grad.add(b.params[i], o.weight_decay());
    grad = as_real(grad);
    const auto sum = as_real(b.sums[i]);
    sum.addcmul_(grad, grad, 1);
    as_real(b.params[i]).addcdiv_(grad, sum.sqrt().add_(o.eps()), -lr.over(of_lr[i]));
  }
}

}  // namespace

struct Adagrad::Plans {
  std::vector<StepPlan<AdagradBucket, AdagradParamState>> of_groups = {};
};

Adagrad::Adagrad(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                 AdagradOptions defaults, ExtraOptions extra)
    : Optimizer("sconce::optim::Adagrad", param_groups,
                std::make_unique<AdagradOptions>(std::move(defaults)), std::move(extra)),
      plans_(std::make_shared<Plans>()) {
  check_construction();
  for (const auto& group : param_groups_) {
    for (const auto& parameter : group.params()) {
      if (parameter.numel() == 0) continue;
      state_[parameter.unsafeGetTensorImpl()] = fresh_state(parameter);
    }
  }
}

Adagrad::Adagrad(std::vector<torch::Tensor> params, AdagradOptions defaults, ExtraOptions extra)
    : Adagrad(one_group("sconce::optim::Adagrad", std::move(params)), std::move(defaults),
              std::move(extra)) {}

void Adagrad::check(const Options& options) const {
  const auto& o = options_as<const AdagradOptions>(options, name());
  TORCH_CHECK_VALUE(o.lr() >= 0, name(), ": expected lr >= 0, got ", o.lr());
  TORCH_CHECK_VALUE(o.lr_decay() >= 0, name(), ": expected lr_decay >= 0, got ", o.lr_decay());
  TORCH_CHECK_VALUE(o.weight_decay() >= 0, name(), ": expected weight_decay >= 0, got ",
                    o.weight_decay());
  TORCH_CHECK_VALUE(o.initial_accumulator_value() >= 0, name(),
                    ": expected initial_accumulator_value >= 0, got ",
                    o.initial_accumulator_value());
  TORCH_CHECK_VALUE(o.eps() >= 0, name(), ": expected eps >= 0, got ", o.eps());
}

std::unique_ptr<AdagradParamState> Adagrad::fresh_state(const torch::Tensor& parameter) const {
  const auto& o = options_as<const AdagradOptions>(*defaults_, name());
  const double initial = o.initial_accumulator_value();
  auto fresh = std::make_unique<AdagradParamState>();
  fresh->step = state_number(parameter, at::zeros({}));
  fresh->sum = parameter.is_complex()
                   ? at::full_like(parameter, c10::complex<double>(initial, initial))
                   : at::full_like(parameter, initial);
  fresh->owner = StateOwner(parameter);
  return fresh;
}

// Python 2.11's fused Adagrad takes parameters on the CPU only.
bool Adagrad::python_has_fused() const {
  return all_are_on(c10::kCPU, param_groups_);
}

bool Adagrad::prepare_group(size_t index) {
  plans_->of_groups.resize(param_groups_.size());
  const auto& group = param_groups_[index];
  const auto make = [this](const torch::Tensor& parameter) { return fresh_state(parameter); };
  const auto state_of = [&](size_t i) -> AdagradParamState& {
    return fitting_state(index, i, &AdagradParamState::sum, make);
  };
  const bool is_sparse =
      plans_->of_groups[index].update(group.params(), state_, /*variant=*/0, state_of);
  const auto& o = options_as<const AdagradOptions>(group.options(), name());
  TORCH_CHECK(!is_sparse || o.weight_decay() == 0, name(),
              ": expected dense gradients with a weight_decay, got a sparse one");
  return is_sparse;
}

void Adagrad::step_group(size_t index, const Amp& amp) {
  const auto& o = options_as<const AdagradOptions>(param_groups_[index].options(), name());
  const ExtraOptions of_group = extra(index);
  auto& buckets = plans_->of_groups[index].buckets();
  for (auto& bucket : buckets) {
    // As in Python, the loop then steps all parameters of this device and type.
    const bool has_sparse = std::any_of(buckets.begin(), buckets.end(), [&](const auto& other) {
      return other.has_sparse_grad && other.device == bucket.device && other.dtype == bucket.dtype;
    });
    bucket.steps.add_one();
    if (kernels() == Kernels::fused && !has_sparse) {
      step_fused(bucket, o, of_group, amp.grad_scale, amp.found_inf);
    } else if (kernels() == Kernels::foreach && !has_sparse) {
      const auto viewed = viewed_as_real(bucket);
      step_foreach(viewed ? *viewed : bucket, o, host_lr(o.lr(), of_group), of_group.maximize);
    } else {
      step_for_loop(bucket, o, host_lr(o.lr(), of_group), of_group.maximize);
    }
    bucket.grads.clear();
  }
}

void Adagrad::state_replaced() {
  plans_->of_groups.clear();
}

Adagrad::Tensors Adagrad::state_tensors(const ParamState& state) const {
  const auto& s = static_cast<const AdagradParamState&>(state);
  return {{"step", s.step.clone()}, {"sum", s.sum}};
}

std::unique_ptr<torch::optim::OptimizerParamState> Adagrad::make_state(
    const Tensors& tensors, const torch::Tensor& parameter) const {
  for (const char* key : {"step", "sum"}) {
    TORCH_CHECK(tensors.contains(key), name(), ": expected the state of a parameter to have ", key);
  }
  auto state = std::make_unique<AdagradParamState>();
  state->step = state_number(parameter, tensors.at("step"));
  state->sum = copy_for(parameter, tensors, "sum");
  state->owner = StateOwner(parameter);
  return state;
}

void Adagrad::visit_options(Options& options, StateVisitor& state) const {
  auto& o = options_as<AdagradOptions>(options, name());
  state("lr", o.lr());
  state("lr_decay", o.lr_decay());
  state("eps", o.eps());
  state("weight_decay", o.weight_decay());
  state("initial_accumulator_value", o.initial_accumulator_value());
}

void Adagrad::save(torch::serialize::OutputArchive& archive) const {
  sync_lr();
  torch::optim::serialize<AdagradParamState, AdagradOptions>(archive, *this);
}

void Adagrad::load(torch::serialize::InputArchive& archive) {
  replace_state(
      [&] { torch::optim::serialize<AdagradParamState, AdagradOptions>(archive, *this); });
}

void AdagradParamState::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("step", c10::IValue(step.item<int64_t>()));
  write(archive, "sum", sum);
}

void AdagradParamState::serialize(torch::serialize::InputArchive& archive) {
  c10::IValue count;
  archive.read("step", count);
  step = at::scalar_tensor(count.toInt(), at::kFloat);
  read(archive, "sum", sum);
}

}  // namespace sconce::optim
