#include "sconce/optim/cyclic_lr.hpp"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <array>
#include <cmath>
#include <numbers>
#include <tuple>

#include "optim/anneal_strategy.hpp"
#include "optim/scheduler_arguments.hpp"
#include "sconce/optim/table_options.hpp"
#include "state/state_visitor.hpp"

namespace sconce::optim::lr_scheduler {

// StateVisitor looks up this function and would not find it in an unnamed namespace.
static constexpr std::array<const char*, 3> names(CyclicMode) {
  return {"triangular", "triangular2", "exp_range"};
}

static constexpr std::array<const char*, 2> names(ScaleMode) {
  return {"cycle", "iterations"};
}

static void visit_state(OneCycleLR::Phase& phase, StateVisitor& state) {
  state("end_step", phase.end_step);
  state("start_lr", phase.start_lr);
  state("end_lr", phase.end_lr);
  state("start_momentum", phase.start_momentum);
  state("end_momentum", phase.end_momentum);
}

namespace {

// Sets the momentum or the first beta. Returns false if the options contain neither a momentum nor
// betas.
bool set_momentum(torch::optim::OptimizerOptions& options, double value) {
  const auto momentum = [value](auto* typed_options) {
    if (typed_options != nullptr) typed_options->momentum(value);
    return typed_options != nullptr;
  };
  const auto beta1 = [value](auto* typed_options) {
    if (typed_options != nullptr)
      typed_options->betas({value, std::get<1>(typed_options->betas())});
    return typed_options != nullptr;
  };
  auto* ours = dynamic_cast<MomentumOptions*>(&options);
  return momentum(dynamic_cast<torch::optim::SGDOptions*>(&options)) ||
         momentum(dynamic_cast<torch::optim::RMSpropOptions*>(&options)) ||
         beta1(dynamic_cast<torch::optim::AdamOptions*>(&options)) ||
         beta1(dynamic_cast<torch::optim::AdamWOptions*>(&options)) ||
         (ours != nullptr && ours->set_momentum(value));
}

int64_t steps_of(const OneCycleLROptions& options) {
  const auto positive = [](const std::optional<int64_t>& number, const char* name) {
    expect(*number > 0, "OneCycleLR", "positive ", name, ", got ", *number);
    return *number;
  };
  if (options.total_steps) return positive(options.total_steps, "total_steps");
  expect(options.epochs && options.steps_per_epoch, "OneCycleLR",
         "either total_steps or both epochs and steps_per_epoch, got neither");
  const int64_t epochs = positive(options.epochs, "epochs");
  const int64_t each = positive(options.steps_per_epoch, "steps_per_epoch");
  expect(epochs <= most_steps / each, "OneCycleLR", "at most 2^53 steps, got ", epochs,
         " epochs of ", each);
  return epochs * each;
}

std::vector<OneCycleLR::Phase> phases_of(const OneCycleLROptions& options) {
  const auto steps = static_cast<double>(steps_of(options));
  const double pct_start = options.pct_start;
  expect(pct_start >= 0 && pct_start <= 1, "OneCycleLR", "pct_start to be between 0 and 1, got ",
         pct_start);
  const OneCycleLR::Phase up = {pct_start * steps - 1, "initial_lr", "max_lr", "max_momentum",
                                "base_momentum"};
  if (!options.three_phase) {
    return {up, {steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"}};
  }
  return {up,
          {2 * pct_start * steps - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"},
          {steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"}};
}

struct Momenta {
  std::vector<double> base;
  std::vector<double> max;
};

// Sets the optimizer's momenta to their maxima, stores both bounds in the groups, and returns the
// bounds.
template <class Options, class Groups>
Momenta begin_momenta(const char* caller, const Options& options,
                      torch::optim::Optimizer& optimizer, Groups& groups) {
  Momenta momenta = {expand(options.base_momentum, optimizer, caller, "base_momentum"),
                     expand(options.max_momentum, optimizer, caller, "max_momentum")};
  for (size_t i = 0; i < momenta.max.size(); ++i) {
    expect(set_momentum(optimizer.param_groups()[i].options(), momenta.max[i]), caller,
           "an optimizer with momentum or betas, because cycle_momentum is set");
    groups.at(i)["max_momentum"] = momenta.max[i];
    groups.at(i)["base_momentum"] = momenta.base[i];
  }
  return momenta;
}

}  // namespace

OneCycleLR::OneCycleLR(torch::optim::Optimizer& optimizer, const PerGroup<double>& max_lr,
                       const OneCycleLROptions& options)
    : GroupLRScheduler(optimizer),
      total_steps_(steps_of(options)),
      phases_(phases_of(options)),
      anneal_strategy_(options.anneal_strategy),
      cycle_momentum_(options.cycle_momentum) {
  const auto max_lrs = expand(max_lr, optimizer, "OneCycleLR", "max_lr");
  if (cycle_momentum_) begin_momenta("OneCycleLR", options, optimizer_, *groups_);
  for (size_t i = 0; i < max_lrs.size(); ++i) {
    base_lrs_[i] = max_lrs[i] / options.div_factor;
    auto& group = groups_->at(i);
    group["initial_lr"] = base_lrs_[i];
    group["max_lr"] = max_lrs[i];
    group["min_lr"] = base_lrs_[i] / options.final_div_factor;
  }
  start();
}

double OneCycleLR::anneal(double start, double end, double pct) const {
  if (anneal_strategy_ == AnnealStrategy::linear) return (end - start) * pct + start;
  return end + (start - end) / 2.0 * (std::cos(std::numbers::pi * pct) + 1);
}

double OneCycleLR::get_lr(size_t group, double, bool) const {
  expect(last_epoch_ <= total_steps_, "OneCycleLR", total_steps_, " steps or fewer, got step ",
         last_epoch_);
  base_lr(group);  // throws if the group was added later
  // A loaded state may contain the group's initial learning rate, but the other values are stored
  // only in the optimizer.
  expect(group < groups_->size(), "OneCycleLR", "the ", groups_->size(),
         " parameter groups that existed at construction, got more groups");
  const auto value = [&](const std::string& name) {
    const auto found = groups_->at(group).find(name);
    TORCH_CHECK(found != groups_->at(group).end(),
                "sconce::optim::lr_scheduler::OneCycleLR: expected a state whose phases refer to "
                "values in a parameter group, got '",
                name, "'");
    return found->second;
  };
  const auto step = static_cast<double>(last_epoch_);
  double start_step = 0;
  auto phase = phases_.begin();
  for (; phase != phases_.end() - 1 && step > phase->end_step; ++phase) {
    start_step = phase->end_step;
  }
  expect(
      phase->end_step != start_step, "OneCycleLR",
      "phases of at least one step, but total_steps and pct_start produce an empty phase at step ",
      last_epoch_);
  const double pct = (step - start_step) / (phase->end_step - start_step);
  if (cycle_momentum_) {
    set_momentum(optimizer_.param_groups()[group].options(),
                 anneal(value(phase->start_momentum), value(phase->end_momentum), pct));
  }
  return anneal(value(phase->start_lr), value(phase->end_lr), pct);
}

double OneCycleLR::restart_lr(size_t group) const {
  return get_lr(group, 0, false);
}

void OneCycleLR::visit_options(StateVisitor& state) {
  state("total_steps", total_steps_);
  state("_schedule_phases", phases_);
  state("_anneal_func_type", anneal_strategy_);
  state("cycle_momentum", cycle_momentum_);
  GroupLRScheduler::visit_options(state);
}

namespace {

constexpr const char* cyclic_lr_name = "CyclicLR";

// Python uses floats for this computation, so a very long cycle does not overflow.
double total_size_of(const CyclicLROptions& options) {
  const int64_t down = options.step_size_down.value_or(options.step_size_up);
  expect(options.step_size_up >= 1, cyclic_lr_name, "step_size_up to be at least 1, got ",
         options.step_size_up);
  expect(down >= 0, cyclic_lr_name, "step_size_down to be at least 0, got ", down);
  return static_cast<double>(options.step_size_up) + static_cast<double>(down);
}

}  // namespace

CyclicLR::CyclicLR(torch::optim::Optimizer& optimizer, const PerGroup<double>& base_lr,
                   const PerGroup<double>& max_lr, const CyclicLROptions& options)
    : GroupLRScheduler(optimizer),
      max_lrs_(expand(max_lr, optimizer, cyclic_lr_name, "max_lr")),
      total_size_(total_size_of(options)),
      step_ratio_(static_cast<double>(options.step_size_up) / total_size_),
      mode_(options.mode),
      gamma_(options.gamma),
      scale_fn_(options.scale_fn),
      scale_mode_(options.scale_mode),
      cycle_momentum_(options.cycle_momentum) {
  const auto base_lrs = expand(base_lr, optimizer, cyclic_lr_name, "base_lr");
  if (cycle_momentum_) {
    auto momenta = begin_momenta(cyclic_lr_name, options, optimizer_, *groups_);
    base_momentums_ = std::move(momenta.base);
    max_momentums_ = std::move(momenta.max);
  }
  for (size_t i = 0; i < base_lrs.size(); ++i) {
    if (!groups_->at(i).contains("initial_lr")) base_lrs_[i] = base_lrs[i];
  }
  start();  // starts from the initial learning rates
  base_lrs_ = base_lrs;
}

double CyclicLR::scale(double cycle) const {
  if (scale_fn_) {
    return scale_fn_(scale_mode_ == ScaleMode::cycle ? static_cast<int64_t>(cycle) : last_epoch_);
  }
  if (mode_ == CyclicMode::exp_range) return std::pow(gamma_, last_epoch_);
  return mode_ == CyclicMode::triangular ? 1.0 : 1 / std::pow(2.0, cycle - 1);
}

double CyclicLR::get_lr(size_t group, double, bool) const {
  const double base = base_lr(group);  // throws if the group was added later
  // A loaded state may contain the group's initial learning rate even if `max_lrs_` and
  // `max_momentums_` have no entry for the group.
  expect(group < max_lrs_.size() && (!cycle_momentum_ || group < max_momentums_.size()),
         cyclic_lr_name, "one max_lr and one momentum for each parameter group, got more groups");
  const auto epoch = static_cast<double>(last_epoch_);
  const double cycle = std::floor(1 + epoch / total_size_);
  const double x = 1.0 + epoch / total_size_ - cycle;
  const double share = x <= step_ratio_ ? x / step_ratio_ : (x - 1) / (step_ratio_ - 1);
  const double factor = scale(cycle);
  if (cycle_momentum_) {
    const double height = (max_momentums_[group] - base_momentums_[group]) * share;
    set_momentum(optimizer_.param_groups()[group].options(),
                 max_momentums_[group] - height * factor);
  }
  return base + (max_lrs_[group] - base) * share * factor;
}

double CyclicLR::restart_lr(size_t group) const {
  return get_lr(group, 0, false);
}

void CyclicLR::visit_options(StateVisitor& state) {
  visit_per_group("max_lrs", max_lrs_, state);
  state("total_size", total_size_);
  state.check(total_size_ >= 1, "at least 1");
  state("step_ratio", step_ratio_);
  state.check(step_ratio_ > 0 && step_ratio_ <= 1, "above 0 and at most 1");
  state("mode", mode_);
  state("gamma", gamma_);
  // If there is no custom function, the mode determines the argument passed to the scaling
  // function.
  auto default_scale_mode =
      mode_ == CyclicMode::exp_range ? ScaleMode::iterations : ScaleMode::cycle;
  state("scale_mode", scale_fn_ ? scale_mode_ : default_scale_mode);
  state.write_only("_scale_fn_custom", c10::IValue());
  state("cycle_momentum", cycle_momentum_);
  if (cycle_momentum_) {
    visit_per_group("base_momentums", base_momentums_, state);
    visit_per_group("max_momentums", max_momentums_, state);
    state.check(base_momentums_.size() == max_momentums_.size(), "as long as 'base_momentums'");
  }
  GroupLRScheduler::visit_options(state);
}

}  // namespace sconce::optim::lr_scheduler
