#include "sconce/optim/reduce_lr_on_plateau.hpp"

#include <algorithm>
#include <array>

#include "host_call.hpp"
#include "optim/metric_mode_values.hpp"
#include "optim/scheduler_arguments.hpp"
#include "state/state_visitor.hpp"

namespace sconce::optim {

namespace lr_scheduler {

// StateVisitor looks up this function and would not find it in an unnamed namespace.
static constexpr std::array<const char*, 2> names(ThresholdMode) {
  return {"rel", "abs"};
}

ReduceLROnPlateau::ReduceLROnPlateau(torch::optim::Optimizer& optimizer,
                                     const ReduceLROnPlateauOptions& options)
    : Scheduler(optimizer),
      options_(options),
      mode_(options.mode.value_or(MetricMode::min)),
      min_lrs_(expand(options.min_lr, optimizer, "ReduceLROnPlateau", "min_lr")),
      best_(worst(mode_)) {
  expect(options.factor < 1, "ReduceLROnPlateau", "factor below 1, got ", options.factor);
  last_lr_ = current_lrs();  // rejects an optimizer without groups
  if (!options.min_lr.is_list()) default_min_lr_ = min_lrs_.front();
}

void ReduceLROnPlateau::step(double metrics) {
  detail::check_not_capturing(typeid(*this), "step");
  ++last_epoch_;
  if (is_better(metrics)) {
    best_ = metrics;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ > options_.patience) {
    reduce();
    cooldown_counter_ = options_.cooldown;
    num_bad_epochs_ = 0;
  }
  last_lr_ = current_lrs();
}

bool ReduceLROnPlateau::set_mode(MetricMode mode) {
  if (mode == mode_) return false;
  const bool has_best = best_ != worst(mode_);
  mode_ = mode;
  best_ = worst(mode);
  num_bad_epochs_ = 0;
  return has_best;
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const double threshold = options_.threshold;
  const bool is_share = options_.threshold_mode == ThresholdMode::rel;
  if (mode_ == MetricMode::min) {
    return metric < (is_share ? best_ * (1.0 - threshold) : best_ - threshold);
  }
  return metric > (is_share ? best_ * (threshold + 1.0) : best_ + threshold);
}

void ReduceLROnPlateau::reduce() {
  auto& groups = optimizer_.param_groups();
  if (groups.size() != min_lrs_.size()) {
    TORCH_CHECK(default_min_lr_, "sconce::optim::lr_scheduler::ReduceLROnPlateau: expected ",
                min_lrs_.size(), " parameter groups (the number of min_lr values), got ",
                groups.size());
    min_lrs_.assign(groups.size(), *default_min_lr_);
  }
  read_lrs();
  for (size_t i = 0; i < groups.size(); ++i) {
    const double old_lr = groups[i].options().get_lr();
    const double new_lr = std::max(old_lr * options_.factor, min_lrs_[i]);
    if (old_lr - new_lr > options_.eps) groups[i].options().set_lr(new_lr);
  }
  write_lrs();
}

void ReduceLROnPlateau::visit_options(StateVisitor& state) {
  state("factor", options_.factor);
  state("default_min_lr", default_min_lr_);
  visit_per_group("min_lrs", min_lrs_, state);
  state("patience", options_.patience);
  state("cooldown", options_.cooldown);
  state("eps", options_.eps);
  state("threshold", options_.threshold);
  state("threshold_mode", options_.threshold_mode);
}

// The mode is saved as part of the progress, because a fit calls `set_mode` only after the state
// has been loaded.
void ReduceLROnPlateau::visit_progress(StateVisitor& state) {
  Scheduler::visit_progress(state);
  state.write_only("mode_worse", worst(mode_));
  state("mode", mode_);
  state("best", best_);
  state("cooldown_counter", cooldown_counter_);
  state("num_bad_epochs", num_bad_epochs_);
}

}  // namespace lr_scheduler

}  // namespace sconce::optim
