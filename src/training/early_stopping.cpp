#include "sconce/training/early_stopping.hpp"

#include <cmath>

#include "detail/state_visitor.hpp"
#include "optim/metric_mode_values.hpp"
#include "training/find_monitor.hpp"

namespace sconce {

EarlyStopping::EarlyStopping(std::string monitor, EarlyStoppingOptions options)
    : monitor_(std::move(monitor)), options_(options), state_(initial_state()) {
  TORCH_CHECK_VALUE(options.min_delta >= 0, "sconce::EarlyStopping: expected min_delta >= 0, got ",
                    options.min_delta);
  TORCH_CHECK_VALUE(options.patience >= 0, "sconce::EarlyStopping: expected patience >= 0, got ",
                    options.patience);
}

EarlyStopping::State EarlyStopping::initial_state() const {
  return {.best_score = optim::worst(options_.mode)};
}

void EarlyStopping::setup(Fit& fit) {
  monitor_ = find_monitor(fit, monitor_, "sconce::EarlyStopping");
  if (is_of_fit_) state_ = initial_state();
  is_of_fit_ = false;
}

void EarlyStopping::on_fit_begin(Fit& fit) {
  is_of_fit_ = true;
  const bool is_of_other = state_.monitor.value_or(monitor_) != monitor_ ||
                           state_.mode.value_or(options_.mode) != options_.mode;
  if (is_of_other) state_ = initial_state();
  if (state_.has_stopped) fit.stop();
}

void EarlyStopping::on_epoch_end(Fit& fit) {
  const double score = fit.epochs.back().at(monitor_);
  const double sign = options_.mode == optim::MetricMode::min ? -1 : 1;
  const bool is_better = sign * score > sign * state_.best_score + options_.min_delta;
  state_.wait_count = is_better ? 0 : state_.wait_count + 1;
  if (is_better) state_.best_score = score;
  state_.has_stopped =
      !std::isfinite(score) || (!is_better && state_.wait_count >= options_.patience);
  if (state_.has_stopped) fit.stop();
}

void visit_state(EarlyStopping::State& state, StateVisitor& visitor) {
  visitor.count("wait_count", state.wait_count);
  visitor("best_score", state.best_score);
  visitor("has_stopped", state.has_stopped);
  visitor.where_there("monitor", state.monitor);
  visitor.where_there("mode", state.mode);
}

c10::IValue EarlyStopping::state_dict() const {
  State state = state_;
  state.monitor = monitor_;
  state.mode = options_.mode;
  return as_state(state);
}

void EarlyStopping::load_state_dict(const c10::IValue& state) {
  state_ = from_state<State>(state, "sconce::EarlyStopping::load_state_dict");
  is_of_fit_ = false;
}

}  // namespace sconce
