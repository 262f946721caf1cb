#include "sconce/training/model_checkpoint.hpp"

#include "training/find_monitor.hpp"
#include "training/settings.hpp"

namespace sconce {

namespace {

constexpr auto model_checkpoint = "sconce::ModelCheckpoint";

}  // namespace

ModelCheckpoint::ModelCheckpoint(Checkpoint& checkpoint, ModelCheckpointOptions options)
    : checkpoint_(checkpoint), options_(std::move(options)) {
  TORCH_CHECK(options_.save_every >= 0, model_checkpoint,
              ": expected save_every of at least 0, got ", options_.save_every);
}

void ModelCheckpoint::setup(Fit& fit) {
  if (options_.monitor) {
    options_.monitor = find_monitor(fit, *options_.monitor, model_checkpoint);
  }
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
  fit.resume(*saved);
  const std::string changes = describe_changes(given, settings_of(fit.states));
  if (!changes.empty() && fit.process_group.rank() == 0) {
    TORCH_WARN(model_checkpoint, ": continues with the options of the checkpoint: ", changes);
  }
}

bool ModelCheckpoint::wants_save(const Fit& fit) const {
  return options_.save_every > 0 && fit.steps_of(fit.batch) % options_.save_every == 0;
}

void ModelCheckpoint::save(Fit& fit) {
  std::optional<double> metric;
  const std::string monitor = options_.monitor.value_or("test_acc");
  const auto usual = monitor.ends_with("loss") ? optim::MetricMode::min : optim::MetricMode::max;
  const bool highest = options_.mode.value_or(usual) == optim::MetricMode::max;
  if (fit.batch == 0 && !fit.epochs.empty() && fit.epochs.back().contains(monitor)) {
    const double value = fit.epochs.back().at(monitor);
    metric = highest ? value : -value;
  }
  checkpoint_.save(fit.states, fit.progress(), metric,
                   (highest ? "highest " : "lowest ") + monitor);
}

}  // namespace sconce
