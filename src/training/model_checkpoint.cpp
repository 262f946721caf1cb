#include "sconce/training/model_checkpoint.hpp"

#include "training/settings.hpp"

namespace sconce {

void ModelCheckpoint::load(Fit& fit) {
  constexpr auto name = "sconce::ModelCheckpoint: ";
  const auto& group = fit.process_group;
  const int ranks = checkpoint_.process_group().world_size();
  TORCH_CHECK(ranks == group.world_size(), name, "expected a checkpoint of ", group.world_size(),
              " processes, as the fit, got one of ", ranks);
  const Settings given = settings_of(fit.states);
  checkpoint_.lock();
  const auto saved = checkpoint_.load(fit.states);
  if (!saved) return;
  fit.batch = saved->batch;
  fit.progress.load_state_dict(saved->extra);
  const std::string changes = describe_changes(given, settings_of(fit.states));
  if (!changes.empty() && group.rank() == 0) {
    TORCH_WARN(name, "goes on with what the checkpoint was saved with: ", changes);
  }
}

void ModelCheckpoint::save(Fit& fit) {
  std::optional<double> metric;
  if (fit.batch == 0 && !fit.epochs.empty() && fit.epochs.back().contains(options_.monitor)) {
    const double value = fit.epochs.back().at(options_.monitor);
    metric = options_.mode == MonitorMode::max ? value : -value;
  }
  checkpoint_.save(fit.states, {std::ssize(fit.epochs), fit.batch, fit.progress.state_dict()},
                   metric);
}

}  // namespace sconce
