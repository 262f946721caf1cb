#include "sconce/optim/lr_scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "host_call.hpp"
#include "optim/scheduler_arguments.hpp"
#include "state/state_visitor.hpp"

namespace sconce::optim::lr_scheduler {

namespace {

using Functions = std::vector<LambdaLR::Function>;

Functions functions_of(const PerGroup<LambdaLR::Function>& given,
                       torch::optim::Optimizer& optimizer, const char* caller) {
  auto functions = expand(given, optimizer, caller, "lr_lambdas");
  for (const auto& function : functions) {
    expect(function != nullptr, caller, "functions, got an empty std::function");
  }
  return functions;
}

// A loaded state may include the initial learning rate of a group that was added later.
double factor(const Functions& functions, size_t group, int64_t epoch, const char* caller) {
  expect(group < functions.size(), caller, "the ", functions.size(),
         " parameter groups that existed at construction, got more groups");
  return functions[group](epoch);
}

// For each function, Python writes None to the state dict, because functions have no state.
void write_lambdas(size_t functions, StateVisitor& state) {
  auto none = StateVisitor::list();
  none.resize(functions);
  state.write_only("lr_lambdas", none);
}

}  // namespace

LambdaLR::LambdaLR(torch::optim::Optimizer& optimizer, const PerGroup<Function>& lr_lambda)
    : GroupLRScheduler(optimizer), lr_lambdas_(functions_of(lr_lambda, optimizer, "LambdaLR")) {
  start();
}

double LambdaLR::get_lr(size_t group, double, bool) const {
  const double base = base_lr(group);
  return base * factor(lr_lambdas_, group, last_epoch_, "LambdaLR");
}

double LambdaLR::restart_lr(size_t group) const {
  return get_lr(group, 0, false);
}

void LambdaLR::visit_options(StateVisitor& state) {
  GroupLRScheduler::visit_options(state);
  write_lambdas(lr_lambdas_.size(), state);
}

MultiplicativeLR::MultiplicativeLR(torch::optim::Optimizer& optimizer,
                                   const PerGroup<Function>& lr_lambda)
    : GroupLRScheduler(optimizer),
      lr_lambdas_(functions_of(lr_lambda, optimizer, "MultiplicativeLR")) {
  start();
}

double MultiplicativeLR::get_lr(size_t group, double lr, bool is_initial) const {
  if (is_initial) return lr;
  return lr * factor(lr_lambdas_, group, last_epoch_, "MultiplicativeLR");
}

// Python does not have a closed-form expression for restarts. On a restart, Python multiplies the
// current learning rate by the factor for epoch 0.
void MultiplicativeLR::restart() {
  auto undo = restore_unless_released(last_epoch_);
  last_epoch_ = 0;
  set_lrs([this](size_t group, double lr) { return get_lr(group, lr, false); });
  undo.release();
}

void MultiplicativeLR::visit_options(StateVisitor& state) {
  GroupLRScheduler::visit_options(state);
  write_lambdas(lr_lambdas_.size(), state);
}

StepLR::StepLR(torch::optim::Optimizer& optimizer, int64_t step_size, double gamma)
    : GroupLRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  expect(step_size > 0, "StepLR", "step_size to be at least 1, got ", step_size);
  start();
}

double StepLR::get_lr(size_t, double lr, bool) const {
  return last_epoch_ == 0 || last_epoch_ % step_size_ != 0 ? lr : lr * gamma_;
}

void StepLR::visit_options(StateVisitor& state) {
  state("step_size", step_size_);
  state.check(step_size_ >= 1, "at least 1");
  state("gamma", gamma_);
  GroupLRScheduler::visit_options(state);
}

MultiStepLR::MultiStepLR(torch::optim::Optimizer& optimizer, std::vector<int64_t> milestones,
                         double gamma)
    : GroupLRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  start();
}

double MultiStepLR::get_lr(size_t, double lr, bool) const {
  const auto times = std::count(milestones_.begin(), milestones_.end(), last_epoch_);
  return times == 0 ? lr : lr * std::pow(gamma_, times);
}

double MultiStepLR::restart_lr(size_t group) const {
  const auto passed = std::count_if(milestones_.begin(), milestones_.end(),
                                    [](int64_t milestone) { return milestone <= 0; });
  return base_lr(group) * std::pow(gamma_, passed);
}

void MultiStepLR::visit_options(StateVisitor& state) {
  state("gamma", gamma_);
  GroupLRScheduler::visit_options(state);
}

ExponentialLR::ExponentialLR(torch::optim::Optimizer& optimizer, double gamma)
    : GroupLRScheduler(optimizer), gamma_(gamma) {
  start();
}

double ExponentialLR::get_lr(size_t, double lr, bool is_initial) const {
  return is_initial ? lr : lr * gamma_;
}

void ExponentialLR::visit_options(StateVisitor& state) {
  state("gamma", gamma_);
  GroupLRScheduler::visit_options(state);
}

CosineAnnealingLR::CosineAnnealingLR(torch::optim::Optimizer& optimizer, int64_t T_max,
                                     double eta_min)
    : GroupLRScheduler(optimizer), T_max_(T_max), eta_min_(eta_min) {
  expect(T_max > 0, "CosineAnnealingLR", "T_max to be at least 1, got ", T_max);
  start();
}

double CosineAnnealingLR::get_lr(size_t group, double lr, bool is_initial) const {
  constexpr double pi = std::numbers::pi;
  const auto T_max = static_cast<double>(T_max_);
  if (is_initial) return lr;
  if ((last_epoch_ - 1 - T_max_) % (2 * T_max_) == 0) {  // after eta_min, the ratio is 0 / 0
    return lr + (base_lr(group) - eta_min_) * (1 - std::cos(pi / T_max)) / 2;
  }
  const auto epoch = static_cast<double>(last_epoch_);
  return (1 + std::cos(pi * epoch / T_max)) / (1 + std::cos(pi * (epoch - 1) / T_max)) *
             (lr - eta_min_) +
         eta_min_;
}

double CosineAnnealingLR::restart_lr(size_t group) const {
  return eta_min_ + (base_lr(group) - eta_min_);
}

void CosineAnnealingLR::visit_options(StateVisitor& state) {
  state("T_max", T_max_);
  state.check(T_max_ >= 1 && T_max_ <= most_steps, "from 1 to 2^53");
  state("eta_min", eta_min_);
  GroupLRScheduler::visit_options(state);
}

ConstantLR::ConstantLR(torch::optim::Optimizer& optimizer, double factor, int64_t total_iters)
    : GroupLRScheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  expect(factor > 0 && factor <= 1, "ConstantLR",
         "factor to be greater than 0 and less than or equal to 1, got ", factor);
  start();
}

double ConstantLR::get_lr(size_t, double lr, bool) const {
  if (last_epoch_ == 0) return lr * factor_;
  return last_epoch_ == total_iters_ ? lr * (1.0 / factor_) : lr;
}

double ConstantLR::restart_lr(size_t group) const {
  return base_lr(group) * (total_iters_ <= 0 ? 1.0 : factor_);
}

void ConstantLR::visit_options(StateVisitor& state) {
  state("factor", factor_);
  state.check(factor_ > 0 && factor_ <= 1, "above 0 and at most 1");
  state("total_iters", total_iters_);
  GroupLRScheduler::visit_options(state);
}

PolynomialLR::PolynomialLR(torch::optim::Optimizer& optimizer, int64_t total_iters, double power)
    : GroupLRScheduler(optimizer), total_iters_(total_iters), power_(power) {
  expect(power >= 0, "PolynomialLR", "power to be at least 0, got ", power);
  start();
}

double PolynomialLR::get_lr(size_t, double lr, bool is_initial) const {
  if (is_initial || last_epoch_ > total_iters_) return lr;
  const auto total_iters = static_cast<double>(total_iters_);
  const auto epoch = static_cast<double>(last_epoch_);
  return lr * std::pow((1.0 - epoch / total_iters) / (1.0 - (epoch - 1) / total_iters), power_);
}

void PolynomialLR::visit_options(StateVisitor& state) {
  state("total_iters", total_iters_);
  state("power", power_);
  state.check(power_ >= 0, "at least 0");
  GroupLRScheduler::visit_options(state);
}

LinearLR::LinearLR(torch::optim::Optimizer& optimizer, LinearLROptions options)
    : GroupLRScheduler(optimizer), options_(options) {
  expect(options.start_factor > 0 && options.start_factor <= 1, "LinearLR",
         "start_factor to be greater than 0 and less than or equal to 1, got ",
         options.start_factor);
  expect(options.end_factor >= 0 && options.end_factor <= 1, "LinearLR",
         "end_factor to be between 0 and 1, got ", options.end_factor);
  start();
}

double LinearLR::get_lr(size_t, double lr, bool is_initial) const {
  const auto& [start_factor, end_factor, total_iters] = options_;
  if (last_epoch_ == 0) return lr * start_factor;
  if (is_initial || last_epoch_ > total_iters) return lr;
  const double change = end_factor - start_factor;
  return lr * (1.0 + change / (static_cast<double>(total_iters) * start_factor +
                               static_cast<double>(last_epoch_ - 1) * change));
}

double LinearLR::restart_lr(size_t group) const {
  return base_lr(group) * options_.start_factor;
}

void LinearLR::visit_options(StateVisitor& state) {
  state("start_factor", options_.start_factor);
  state("end_factor", options_.end_factor);
  state("total_iters", options_.total_iters);
  GroupLRScheduler::visit_options(state);
}

SequentialLR::SequentialLR(torch::optim::Optimizer& optimizer,
                           std::vector<std::shared_ptr<GroupLRScheduler>> schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer),
      schedulers_(std::move(schedulers)),
      milestones_(std::move(milestones)) {
  constexpr const char* caller = "SequentialLR";
  expect(!schedulers_.empty(), caller, "at least one scheduler, got none");
  expect(milestones_.size() + 1 == schedulers_.size(), caller,
         "one fewer milestone than schedulers, got ", milestones_.size(), " for ",
         schedulers_.size());
  expect(std::is_sorted(milestones_.begin(), milestones_.end()), caller,
         "milestones in order, got ", milestones_);
  for (size_t i = 0; i < schedulers_.size(); ++i) {
    expect(schedulers_[i] != nullptr, caller, "schedulers, got a null pointer at index ", i);
    expect(&schedulers_[i]->optimizer_ == &optimizer, caller,
           "all schedulers to belong to the same optimizer, got a different optimizer at index ",
           i);
  }
  // A group may have been removed, or added without an initial learning rate.
  auto& groups = optimizer.param_groups();
  const auto& values = *schedulers_.front()->groups_;
  for (size_t i = 0; i < std::min(groups.size(), values.size()); ++i) {
    const auto initial = values[i].find("initial_lr");
    if (initial != values[i].end()) groups[i].options().set_lr(initial->second);
  }
  for (const auto& scheduler : schedulers_) --scheduler->last_epoch_;  // undoes their initial steps
  schedulers_[active()]->start();
  last_lr_ = schedulers_[active()]->get_last_lr();
}

size_t SequentialLR::active() const {
  const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_);
  return static_cast<size_t>(next - milestones_.begin());
}

void SequentialLR::step() {
  detail::run_on_host(typeid(*this), "step", [this] {
    auto undo = restore_unless_released(last_epoch_);
    ++last_epoch_;  // read by active
    const size_t index = active();
    if (index > 0 && milestones_[index - 1] == last_epoch_) {
      schedulers_[index]->restart();
    } else {
      schedulers_[index]->step();
    }
    undo.release();
    last_lr_ = schedulers_[index]->get_last_lr();
  });
}

c10::IValue SequentialLR::options() const {
  auto scheduler_options = StateVisitor::list();
  for (const auto& scheduler : schedulers_) scheduler_options.push_back(scheduler->options());
  auto all = Scheduler::options().toGenericDict();
  all.insert("_schedulers", scheduler_options);
  return all;
}

void SequentialLR::visit_options(StateVisitor& state) {
  state("_milestones", milestones_);
}

void SequentialLR::visit_progress(StateVisitor& state) {
  Scheduler::visit_progress(state);
  state("_schedulers", schedulers_);
}

}  // namespace sconce::optim::lr_scheduler
