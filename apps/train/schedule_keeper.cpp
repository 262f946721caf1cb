#include "schedule_keeper.hpp"

#include <torch/optim/optimizer.h>

namespace train {

ScheduleKeeper::ScheduleKeeper(const CommandLine& line, const ScheduleSpan& span,
                               Schedule& schedule, const std::optional<SavedRun>& saved)
    : line_(line),
      span_(span),
      schedule_(schedule),
      is_loaded_(!saved || saved->schedule_epochs.has_value()) {
  if (span.restarts) schedule.scheduler->load_state_dict(saved->scheduler);
}

sconce::Stateful ScheduleKeeper::epochs_of_schedule() const {
  const auto state_dict = [epochs = line_.epochs] {
    c10::impl::GenericDict state(c10::StringType::get(), c10::AnyType::get());
    state.insert("epochs", int64_t{epochs});
    return c10::IValue(state);
  };
  // Loading ignores the saved number of epochs, because the number has already been compared with
  // the command line or is about to be replaced.
  return {state_dict, [](const c10::IValue&) {}};
}

std::optional<sconce::Stateful> ScheduleKeeper::state() {
  if (!is_loaded_) return {};
  return epochs_of_schedule();
}

void ScheduleKeeper::on_fit_start(sconce::Fit& fit) {
  if (!is_loaded_) fit.states.emplace_back(name(), epochs_of_schedule());
  if (!span_.restarts) return;
  const double lr = line_.learning_rate();
  for (auto& group : fit.optimizer.param_groups()) group.options().set_lr(lr);
  const auto initial_schedule =
      make_schedule(line_.scheduler, fit.optimizer, span_.epochs, span_.steps);
  schedule_.scheduler->load_state_dict(initial_schedule.scheduler->state_dict());
}

}  // namespace train
