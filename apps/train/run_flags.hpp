#pragma once

#include <filesystem>

#include "command_line.hpp"
#include "training_data.hpp"

namespace train {

/// Returns the path of the file in the checkpoint folder that stores the flags of its run.
std::filesystem::path run_flags_file(const CommandLine& line);

/// Writes this file, which contains the flags that affect the result of training and a description
/// of the data.
/// @throw c10::Error with the file's path and the cause.
void write_run_flags(const CommandLine& line, const TrainingData& data);

/// Compares the command line and the data of a resumed run with this file, if the file exists.
/// Values that are missing from the file are skipped, because earlier versions wrote fewer values.
/// A different value would be ignored in favor of the checkpoint's value, or would be incompatible
/// with the checkpoint. `schedule_span` checks the number of epochs.
/// @throw UsageError with the first flag that has a different value.
void check_run_flags(const CommandLine& line, const TrainingData& data);

}  // namespace train
