#pragma once

#include <filesystem>

#include "command_line.hpp"
#include "training_data.hpp"

namespace train {

/// Returns the file of the checkpoint folder that holds the flags of its run.
std::filesystem::path run_flags_file(const CommandLine& line);

/// Writes that file, with the flags that change the result of a training, and what the data is.
/// @throw c10::Error naming the file and the cause.
void write_run_flags(const CommandLine& line, const TrainingData& data);

/// Compares the command line of a resumed run and its data with that file, if it exists, as far as
/// the file goes: earlier versions wrote less. Another value would be ignored in favor of the
/// checkpoint's, or would not fit it. `schedule_span` checks the number of epochs.
/// @throw UsageError naming the first flag that has another value.
void check_run_flags(const CommandLine& line, const TrainingData& data);

}  // namespace train
