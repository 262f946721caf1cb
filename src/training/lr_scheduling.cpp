#include "sconce/training/lr_scheduling.hpp"

#include "training/describe_best.hpp"
#include "training/find_monitor.hpp"

namespace sconce {

namespace {

constexpr auto plateau_scheduling = "sconce::PlateauScheduling";

}  // namespace

// OneCycleLR throws after its last step. This check reports the problem before the fit starts
// rather than at the end of the fit.
void LRScheduling::on_fit_start(Fit& fit) {
  const auto* schedule = dynamic_cast<const optim::lr_scheduler::OneCycleLR*>(&scheduler_);
  if (schedule == nullptr) return;
  const bool by_steps = interval_ == SchedulerInterval::step;
  const int64_t epochs_left = fit.max_epochs - std::ssize(fit.epochs);
  const int64_t left =
      by_steps ? epochs_left * fit.steps_in(fit.num_training_batches) - fit.steps_in(fit.batch)
               : epochs_left;
  const int64_t needed = schedule->last_epoch() + left;
  TORCH_CHECK(left <= 0 || needed <= schedule->total_steps(),
              "sconce::LRScheduling: expected a OneCycleLR with at least ", needed, " steps (for ",
              fit.max_epochs, " epochs), got a schedule with ", schedule->total_steps(),
              "; a scheduler restored from a checkpoint keeps the saved number of steps");
}

void LRScheduling::on_after_optimizer_step(Fit&) {
  if (interval_ == SchedulerInterval::step) scheduler_.step();
}

void LRScheduling::on_epoch_end(Fit&) {
  if (interval_ == SchedulerInterval::epoch) scheduler_.step();
}

void PlateauScheduling::setup(Fit& fit) {
  monitor_ = find_monitor(fit, requested_monitor_, plateau_scheduling);
  mode_ = find_mode(fit, monitor_, scheduler_.given_mode(), plateau_scheduling);
}

void PlateauScheduling::on_fit_start(Fit& fit) {
  const auto restored = scheduler_.mode();
  if (!scheduler_.set_mode(mode_) || fit.process_group.rank() > 0) return;
  TORCH_WARN(plateau_scheduling, ": the scheduler's best value is the ",
             describe_best(restored, monitor_), "; restarting with the ",
             describe_best(mode_, monitor_));
}

void PlateauScheduling::on_epoch_end(Fit& fit) {
  check_monitor(fit, monitor_, plateau_scheduling);
  scheduler_.step(fit.epochs.back().at(monitor_));
}

}  // namespace sconce
