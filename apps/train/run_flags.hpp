#pragma once

#include <filesystem>

#include "command_line.hpp"
#include "training_data.hpp"

namespace train {

/// Returns the path of the file in the checkpoint folder that stores the flags of its run.
std::filesystem::path run_flags_file(const CommandLine& line);

/// Writes that file, with the flags that change the result of training and a description of the
/// data.
/// @throw c10::Error naming the file and the cause.
void write_run_flags(const CommandLine& line, const TrainingData& data);

/// Compares the command line of a resumed run and its data with that file, if it exists. Values
/// that the file lacks are skipped, because earlier versions wrote fewer. A different value would
/// be ignored in favor of the checkpoint's value, or would not fit the checkpoint. `schedule_span`
/// checks the number of epochs.
/// @throw UsageError naming the first flag with a different value.
void check_run_flags(const CommandLine& line, const TrainingData& data);

}  // namespace train
