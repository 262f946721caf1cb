#include "sconce/optim/adam.hpp"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/serialize/archive.h>

#include <type_traits>
#include <utility>

#include "optim/adam_kernels.hpp"
#include "optim/conversions.hpp"
#include "optim/fitting_state.hpp"
#include "optim/one_group.hpp"
#include "optim/step_plan.hpp"
#include "state/state_visitor.hpp"

namespace sconce::optim {

namespace {

template <class AdamOptions>
constexpr bool is_adamw = std::is_same_v<AdamOptions, torch::optim::AdamWOptions>;

template <class AdamOptions>
constexpr const char* adam_name =
    is_adamw<AdamOptions> ? "sconce::optim::AdamW" : "sconce::optim::Adam";

}  // namespace

struct AdamBase::Plans {
  std::vector<StepPlan<AdamBucket, AdamParamState>> of_groups = {};
};

AdamBase::AdamBase(std::string name,
                   const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                   std::unique_ptr<torch::optim::OptimizerOptions> defaults, ExtraOptions extra)
    : Optimizer(std::move(name), param_groups, std::move(defaults), std::move(extra)),
      plans_(std::make_shared<Plans>()) {}

void AdamBase::check_construction() {
  TORCH_CHECK_VALUE(!(extra().lr && extra().kernels == Kernels::foreach), name(),
                    ": expected a number as lr with Kernels::foreach, got a tensor");
  Optimizer::check_construction();
}

void AdamBase::check(const Options& options) const {
  const auto h = hyperparameters(options);
  TORCH_CHECK_VALUE(h.lr >= 0, name(), ": expected lr >= 0, got ", h.lr);
  TORCH_CHECK_VALUE(h.eps >= 0, name(), ": expected eps >= 0, got ", h.eps);
  TORCH_CHECK_VALUE(h.beta1 >= 0 && h.beta1 < 1 && h.beta2 >= 0 && h.beta2 < 1, name(),
                    ": expected betas in [0, 1), got ", h.beta1, " and ", h.beta2);
  TORCH_CHECK_VALUE(h.weight_decay >= 0, name(), ": expected weight_decay >= 0, got ",
                    h.weight_decay);
}

AdamParamState& AdamBase::state_for(size_t group, size_t index, bool amsgrad) {
  const auto make = [this](const torch::Tensor& parameter) {
    auto fresh = std::make_unique<AdamParamState>();
    fresh->step = state_number(parameter, at::zeros({}));
    fresh->exp_avg = at::zeros_like(parameter);
    fresh->exp_avg_sq = at::zeros_like(parameter);
    return fresh;
  };
  auto& state = fitting_state(group, index, &AdamParamState::exp_avg, make);
  if (amsgrad && !state.max_exp_avg_sq.defined()) {
    state.max_exp_avg_sq = at::zeros_like(param_groups_[group].params()[index]);
  }
  return state;
}

bool AdamBase::prepare_group(size_t index) {
  plans_->of_groups.resize(param_groups_.size());
  const auto& group = param_groups_[index];
  const bool amsgrad = hyperparameters(group.options()).amsgrad;
  const auto state_of = [&](size_t i) -> AdamParamState& { return state_for(index, i, amsgrad); };
  return plans_->of_groups[index].update(group.params(), state_, amsgrad, state_of);
}

void AdamBase::step_group(size_t index, const Amp& amp) {
  auto h = hyperparameters(param_groups_[index].options());
  const ExtraOptions of_group = extra(index);
  LearningRate lr = {h.lr, {}};
  if (kernels() != Kernels::fused) lr = host_lr(h.lr, of_group);
  h.lr = lr.number;
  for (auto& bucket : plans_->of_groups[index].buckets()) {
    bucket.steps.add_one();
    if (kernels() == Kernels::fused) {
      step_fused(bucket, h, of_group, amp.grad_scale, amp.found_inf);
    } else if (kernels() == Kernels::foreach) {
      const auto viewed = viewed_as_real(bucket);
      step_foreach(viewed ? *viewed : bucket, h, of_group.maximize);
    } else {
      step_for_loop(bucket, h, lr, of_group.maximize);
    }
    bucket.grads.clear();
  }
}

void AdamBase::state_replaced() {
  plans_->of_groups.clear();
}

AdamBase::Tensors AdamBase::state_tensors(const ParamState& state) const {
  const auto& s = static_cast<const AdamParamState&>(state);
  Tensors tensors = {
      {"step", s.step.clone()}, {"exp_avg", s.exp_avg}, {"exp_avg_sq", s.exp_avg_sq}};
  if (s.max_exp_avg_sq.defined()) tensors["max_exp_avg_sq"] = s.max_exp_avg_sq;
  return tensors;
}

std::unique_ptr<torch::optim::OptimizerParamState> AdamBase::make_state(
    const Tensors& tensors, const torch::Tensor& parameter) const {
  for (const char* key : {"step", "exp_avg", "exp_avg_sq"}) {
    TORCH_CHECK(tensors.contains(key), name(), ": expected the state of a parameter to have ", key);
  }
  auto state = std::make_unique<AdamParamState>();
  state->step = state_number(parameter, tensors.at("step"));
  state->exp_avg = copy_for(parameter, tensors, "exp_avg");
  state->exp_avg_sq = copy_for(parameter, tensors, "exp_avg_sq");
  state->max_exp_avg_sq = copy_for(parameter, tensors, "max_exp_avg_sq");
  state->owner = StateOwner(parameter);
  return state;
}

template <class AdamOptions>
AdamOf<AdamOptions>::AdamOf(const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
                            AdamOptions defaults, ExtraOptions extra)
    : AdamBase(adam_name<AdamOptions>, param_groups,
               std::make_unique<AdamOptions>(std::move(defaults)), std::move(extra)) {
  check_construction();
}

template <class AdamOptions>
AdamOf<AdamOptions>::AdamOf(std::vector<torch::Tensor> params, AdamOptions defaults,
                            ExtraOptions extra)
    : AdamOf(one_group(adam_name<AdamOptions>, std::move(params)), std::move(defaults),
             std::move(extra)) {}

template <class AdamOptions>
AdamHyperparameters AdamOf<AdamOptions>::hyperparameters(const Options& options) const {
  const auto& o = options_as<const AdamOptions>(options, name());
  const auto [beta1, beta2] = o.betas();
  return {o.lr(), beta1, beta2, o.eps(), o.weight_decay(), o.amsgrad(), is_adamw<AdamOptions>};
}

template <class AdamOptions>
void AdamOf<AdamOptions>::visit_options(Options& options, StateVisitor& state) const {
  auto& o = options_as<AdamOptions>(options, name());
  state("lr", o.lr());
  state("betas", o.betas());
  state("eps", o.eps());
  state("weight_decay", o.weight_decay());
  state("amsgrad", o.amsgrad(), false);
  state.write_only("capturable", false);
  bool decoupled = is_adamw<AdamOptions>;  // states of older PyTorch versions lack it
  state("decoupled_weight_decay", decoupled, is_adamw<AdamOptions>);
  TORCH_CHECK_VALUE(is_adamw<AdamOptions> || !decoupled, name(),
                    "::load_state_dict: expected the state of an Adam, got that of an AdamW");
}

template <class AdamOptions>
void AdamOf<AdamOptions>::save(torch::serialize::OutputArchive& archive) const {
  sync_lr();
  torch::optim::serialize<AdamParamState, AdamOptions>(archive, *this);
}

template <class AdamOptions>
void AdamOf<AdamOptions>::load(torch::serialize::InputArchive& archive) {
  replace_state([&] { torch::optim::serialize<AdamParamState, AdamOptions>(archive, *this); });
}

template class AdamOf<torch::optim::AdamOptions>;
template class AdamOf<torch::optim::AdamWOptions>;

void AdamParamState::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("step", c10::IValue(step.item<int64_t>()));
  write(archive, "exp_avg", exp_avg);
  write(archive, "exp_avg_sq", exp_avg_sq);
  write(archive, "max_exp_avg_sq", max_exp_avg_sq);
}

void AdamParamState::serialize(torch::serialize::InputArchive& archive) {
  c10::IValue count;
  archive.read("step", count);
  step = at::scalar_tensor(count.toInt(), at::kFloat);
  read(archive, "exp_avg", exp_avg);
  read(archive, "exp_avg_sq", exp_avg_sq);
  read(archive, "max_exp_avg_sq", max_exp_avg_sq);
}

}  // namespace sconce::optim
