#include "sconce/training/early_stopping.hpp"

#include <cmath>

#include "optim/metric_mode_values.hpp"
#include "sconce/repr.hpp"
#include "state/state_visitor.hpp"
#include "training/describe_best.hpp"
#include "training/find_monitor.hpp"

namespace sconce {

EarlyStopping::EarlyStopping(std::string monitor, EarlyStoppingOptions options)
    : options_(std::move(options)),
      requested_monitor_(std::move(monitor)),
      monitor_(requested_monitor_),
      mode_(options_.mode.value_or(optim::MetricMode::min)),
      state_(initial_state()) {
  TORCH_CHECK_VALUE(options_.min_delta >= 0, "sconce::EarlyStopping: expected min_delta >= 0, got ",
                    options_.min_delta);
  TORCH_CHECK_VALUE(options_.patience >= 0, "sconce::EarlyStopping: expected patience >= 0, got ",
                    options_.patience);
}

EarlyStopping::State EarlyStopping::initial_state() const {
  return {.best_score = optim::worst(mode_)};
}

void EarlyStopping::setup(Fit& fit) {
  monitor_ = find_monitor(fit, requested_monitor_, "sconce::EarlyStopping");
  mode_ = find_mode(fit, monitor_, options_.mode, "sconce::EarlyStopping");
  if (!is_restored_) state_ = initial_state();
}

void EarlyStopping::on_fit_start(Fit& fit) {
  is_restored_ = false;
  const std::string kept = state_.monitor.value_or(monitor_);
  const optim::MetricMode mode = state_.mode.value_or(mode_);
  if (kept != monitor_ || mode != mode_) {
    if (std::isfinite(state_.best_score) && fit.process_group.rank() == 0) {
      TORCH_WARN("sconce::EarlyStopping: the restored best value is the ",
                 describe_best(mode, kept), "; restarting with the ",
                 describe_best(mode_, monitor_));
    }
    state_ = initial_state();
  }
  if (state_.has_stopped) fit.stop(reason(fit));
}

void EarlyStopping::on_epoch_end(Fit& fit) {
  check_monitor(fit, monitor_, "sconce::EarlyStopping");
  const double score = fit.epochs.back().at(monitor_);
  const double sign = mode_ == optim::MetricMode::min ? -1 : 1;
  const bool is_better = sign * score > sign * state_.best_score + options_.min_delta;
  state_.wait_count = is_better ? 0 : state_.wait_count + 1;
  if (is_better) state_.best_score = score;
  state_.has_stopped =
      !std::isfinite(score) || (!is_better && state_.wait_count >= options_.patience);
  if (state_.has_stopped) fit.stop(reason(fit));
}

// Returns the reason why the fit stops after the most recent epoch.
std::string EarlyStopping::reason(const Fit& fit) const {
  const bool has_value = !fit.epochs.empty() && fit.epochs.back().contains(monitor_);
  const double score = has_value ? fit.epochs.back().at(monitor_) : state_.best_score;
  if (!std::isfinite(score)) return monitor_ + " is not finite: " + repr(score);
  return c10::str(monitor_, " has not improved for ", state_.wait_count,
                  state_.wait_count == 1 ? " epoch" : " epochs", "; the ",
                  mode_ == optim::MetricMode::min ? "lowest" : "highest", " was ",
                  state_.best_score);
}

void visit_state(EarlyStopping::State& state, StateVisitor& visitor) {
  visitor.count("wait_count", state.wait_count);
  visitor("best_score", state.best_score);
  visitor("has_stopped", state.has_stopped);
  visitor.optional_value("monitor", state.monitor);
  visitor.optional_value("mode", state.mode);
}

c10::IValue EarlyStopping::state_dict() const {
  State state = state_;
  state.monitor = monitor_;
  state.mode = mode_;
  return as_state(state);
}

void EarlyStopping::load_state_dict(const c10::IValue& state) {
  state_ = from_state<State>(state, "sconce::EarlyStopping::load_state_dict");
  is_restored_ = true;
}

}  // namespace sconce
