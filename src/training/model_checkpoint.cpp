#include "sconce/training/model_checkpoint.hpp"

#include "training/check_monitor.hpp"
#include "training/settings.hpp"

namespace sconce {

namespace {

constexpr auto model_checkpoint = "sconce::ModelCheckpoint";

}  // namespace

void ModelCheckpoint::setup(Fit& fit) {
  if (options_.monitor) check_monitor(fit, *options_.monitor, model_checkpoint);
  const int of_fit = fit.process_group.world_size();
  const int ranks = checkpoint_.process_group().world_size();
  TORCH_CHECK(ranks == of_fit, model_checkpoint, ": expected a checkpoint of ", of_fit,
              " processes, as the fit, got one of ", ranks);
}

void ModelCheckpoint::load(Fit& fit) {
  const Settings given = settings_of(fit.states);
  checkpoint_.lock();
  const auto saved = checkpoint_.load(fit.states);
  if (!saved) return;
  fit.batch = saved->batch;
  fit.progress.load_state_dict(saved->extra);
  const std::string changes = describe_changes(given, settings_of(fit.states));
  if (!changes.empty() && fit.process_group.rank() == 0) {
    TORCH_WARN(model_checkpoint, ": goes on with what the checkpoint was saved with: ", changes);
  }
}

void ModelCheckpoint::save(Fit& fit) {
  std::optional<double> metric;
  const std::string monitor = options_.monitor.value_or("test_acc");
  if (fit.batch == 0 && !fit.epochs.empty() && fit.epochs.back().contains(monitor)) {
    const double value = fit.epochs.back().at(monitor);
    metric = options_.mode == MonitorMode::max ? value : -value;
  }
  checkpoint_.save(fit.states, {std::ssize(fit.epochs), fit.batch, fit.progress.state_dict()},
                   metric);
}

}  // namespace sconce
