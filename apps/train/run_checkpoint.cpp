#include "run_checkpoint.hpp"

#include "earlier_runs.hpp"
#include "model_file.hpp"
#include "results.hpp"
#include "run_flags.hpp"

namespace train {

namespace {

std::filesystem::path table_file(const CommandLine& line) {
  return line.checkpoint / "table.safetensors";
}

}  // namespace

Task resumed_table(const CommandLine& line) {
  const bool is_there = line.resume && std::filesystem::exists(table_file(line));
  return is_there && !latest_checkpoint(line).empty() ? load_task(table_file(line)) : Task();
}

void RunSaving::on_fit_start(sconce::Fit& fit) {
  if (fit.process_group.rank() != 0) return;
  write_run_flags(line_, data_);
  if (!data_.task.is_table()) return;
  sconce::io::save_safetensors(table_file(line_), sconce::StateDict(),
                               model_metadata(line_.model, data_.task));
}

std::optional<sconce::Checkpoint> open_checkpoint(const CommandLine& line, const TrainingData& data,
                                                  const sconce::distributed::ProcessGroup& group) {
  if (line.checkpoint.empty()) return {};
  std::optional<sconce::Checkpoint> checkpoint;
  checkpoint.emplace(line.checkpoint,
                     sconce::CheckpointOptions{.resume = line.resume, .process_group = group});
  if (group.rank() == 0) check_writable(run_flags_file(line), "--checkpoint");
  if (!checkpoint->latest().empty()) check_run_flags(line, data);
  return checkpoint;
}

std::optional<SavedRun> saved_run(const std::optional<sconce::Checkpoint>& checkpoint) {
  if (!checkpoint || checkpoint->latest().empty()) return {};
  return read_saved_run(checkpoint->latest());
}

}  // namespace train
