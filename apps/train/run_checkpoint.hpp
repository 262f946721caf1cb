#pragma once

#include <optional>

#include "command_line.hpp"
#include "saved_run.hpp"
#include "sconce/training/checkpoint.hpp"
#include "sconce/training/trainer_callback.hpp"
#include "training_data.hpp"

namespace train {

/// Opens the run's checkpoint folder if `--checkpoint` is given.
/// @throw UsageError if a saved run used different flags or different data.
/// @throw c10::Error if the folder cannot be written.
std::optional<sconce::Checkpoint> open_checkpoint(const CommandLine& line, const TrainingData& data,
                                                  const sconce::distributed::ProcessGroup& group);

/// Reads the latest checkpoint, if there is one.
/// @throw c10::Error if the file is corrupted.
std::optional<SavedRun> saved_run(const std::optional<sconce::Checkpoint>& checkpoint);

/// Returns the task of the run that `--resume` continues if that run trains on a table, and an
/// empty task otherwise.
/// @throw c10::Error if the file is corrupted.
Task resumed_table(const CommandLine& line);

/// When a run starts, writes its flags and, for a table, its task to the checkpoint folder.
class RunSaving : public sconce::TrainerCallback {
 public:
  /// Both must outlive this object.
  RunSaving(const CommandLine& line, const TrainingData& data) : line_(line), data_(data) {}
  void on_fit_start(sconce::Fit& fit) override;

 private:
  const CommandLine& line_;
  const TrainingData& data_;
};

}  // namespace train
