#include "sconce/training/model_checkpoint.hpp"

#include "training/find_monitor.hpp"
#include "training/settings.hpp"

namespace sconce {

namespace {

constexpr auto model_checkpoint = "sconce::ModelCheckpoint";
constexpr auto default_monitor = "val_acc";  // or "test_acc", unless a test set is named "val"

// The errors thrown by the fit do not contain the file name.
void resume(Fit& fit, const RunProgress& saved, const std::filesystem::path& file) {
  try {
    fit.resume(saved);
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, model_checkpoint, ": ", file.string(), ": ", error.what_without_backtrace());
  }
}

}  // namespace

ModelCheckpoint::ModelCheckpoint(Checkpoint& checkpoint, ModelCheckpointOptions options)
    : checkpoint_(checkpoint), options_(std::move(options)) {
  TORCH_CHECK(options_.every_n_train_steps >= 0, model_checkpoint,
              ": expected every_n_train_steps to be at least 0, got ",
              options_.every_n_train_steps);
}

void ModelCheckpoint::setup(Fit& fit) {
  const bool has_default = has_value(fit, default_monitor) || has_value(fit, "test_acc");
  monitored_.reset();
  if (options_.monitor || has_default) {
    const auto monitor =
        find_monitor(fit, options_.monitor.value_or(default_monitor), model_checkpoint);
    monitored_ = {monitor, find_mode(fit, monitor, options_.mode, model_checkpoint)};
  }
  const int fit_ranks = fit.process_group.world_size();
  const int ranks = checkpoint_.process_group().world_size();
  TORCH_CHECK(ranks == fit_ranks, model_checkpoint, ": expected a checkpoint from ", fit_ranks,
              " processes (as in this fit), got a process count of ", ranks);
}

void ModelCheckpoint::load(Fit& fit) {
  const Settings given = settings_of(fit.states);
  checkpoint_.lock();
  const auto saved = checkpoint_.load(fit.states);
  if (!saved) return;
  resume(fit, *saved, checkpoint_.latest());
  const std::string changes = describe_changes(given, settings_of(fit.states));
  if (!changes.empty() && fit.process_group.rank() == 0) {
    TORCH_WARN(model_checkpoint, ": continuing with the checkpoint's options: ", changes);
  }
}

bool ModelCheckpoint::should_save(const Fit& fit) const {
  return options_.every_n_train_steps > 0 &&
         fit.steps_in(fit.batch) % options_.every_n_train_steps == 0;
}

void ModelCheckpoint::save(Fit& fit) {
  const bool is_after_epoch = fit.batch == 0 && !fit.epochs.empty();
  if (monitored_ && is_after_epoch) check_monitor(fit, monitored_->first, model_checkpoint);
  if (!monitored_ || !is_after_epoch || !fit.epochs.back().contains(monitored_->first)) {
    return checkpoint_.save(fit.states, fit.progress());
  }
  const auto& [name, mode] = *monitored_;
  checkpoint_.save(fit.states, fit.progress(),
                   MonitoredValue(name, fit.epochs.back().at(name), mode));
}

}  // namespace sconce
