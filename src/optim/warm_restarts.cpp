#include "sconce/optim/warm_restarts.hpp"

#include <cmath>
#include <numbers>

#include "host_call.hpp"
#include "optim/scheduler_arguments.hpp"
#include "state/state_visitor.hpp"

namespace sconce::optim::lr_scheduler {

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(torch::optim::Optimizer& optimizer,
                                                         int64_t T_0, int64_t T_mult,
                                                         double eta_min)
    : GroupLRScheduler(optimizer),
      T_0_(T_0),
      T_mult_(T_mult),
      eta_min_(eta_min),
      T_i_(static_cast<double>(T_0)) {
  constexpr const char* caller = "CosineAnnealingWarmRestarts";
  expect(T_0 >= 1, caller, "T_0 to be at least 1, got ", T_0);
  expect(T_mult >= 1, caller, "T_mult to be at least 1, got ", T_mult);
  start();
}

void CosineAnnealingWarmRestarts::step() {
  detail::run_on_host(typeid(*this), "step", [this] {
    auto undo = restore_unless_released(T_i_, T_cur_);
    if (++T_cur_ >= T_i_) {
      T_cur_ = std::fmod(T_cur_, T_i_);
      T_i_ *= static_cast<double>(T_mult_);
    }
    GroupLRScheduler::step();
    undo.release();
  });
}

void CosineAnnealingWarmRestarts::step(double epoch) {
  detail::check_not_capturing(typeid(*this), "step(epoch)");
  expect(epoch >= 0 && epoch <= static_cast<double>(most_steps), "CosineAnnealingWarmRestarts",
         "an epoch from 0 to 2^53, got ", epoch);
  auto undo = restore_unless_released(T_i_, T_cur_, last_epoch_);
  const auto T_0 = static_cast<double>(T_0_);
  const auto T_mult = static_cast<double>(T_mult_);
  if (epoch < T_0) {
    T_cur_ = epoch;
    T_i_ = T_0;
  } else if (T_mult_ == 1) {
    T_cur_ = std::fmod(epoch, T_0);
  } else {
    const double restarts = std::trunc(std::log(epoch / T_0 * (T_mult - 1) + 1) / std::log(T_mult));
    T_cur_ = epoch - T_0 * (std::pow(T_mult, restarts) - 1) / (T_mult - 1);
    T_i_ = T_0 * std::pow(T_mult, restarts);
  }
  last_epoch_ = static_cast<int64_t>(std::floor(epoch));
  set_lrs([this](size_t group, double lr) { return get_lr(group, lr, false); });
  undo.release();
}

double CosineAnnealingWarmRestarts::get_lr(size_t group, double, bool) const {
  return eta_min_ +
         (base_lr(group) - eta_min_) * (1 + std::cos(std::numbers::pi * T_cur_ / T_i_)) / 2;
}

double CosineAnnealingWarmRestarts::restart_lr(size_t group) const {
  return get_lr(group, 0, false);
}

void CosineAnnealingWarmRestarts::restart() {
  auto undo = restore_unless_released(T_i_, T_cur_);
  T_cur_ = 0;
  T_i_ = static_cast<double>(T_0_);
  GroupLRScheduler::restart();
  undo.release();
}

void CosineAnnealingWarmRestarts::visit_options(StateVisitor& state) {
  state("T_0", T_0_);
  state.check(T_0_ >= 1 && T_0_ <= most_steps, "from 1 to 2^53");
  state("T_mult", T_mult_);
  state.check(T_mult_ >= 1, "at least 1");
  state("eta_min", eta_min_);
  GroupLRScheduler::visit_options(state);
}

void CosineAnnealingWarmRestarts::visit_progress(StateVisitor& state) {
  state("T_i", T_i_);
  state.check(T_i_ >= 1, "at least 1");
  state("T_cur", T_cur_);
  GroupLRScheduler::visit_progress(state);
}

}  // namespace sconce::optim::lr_scheduler
