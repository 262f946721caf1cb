#pragma once

#include <filesystem>

#include "command_line.hpp"

namespace train {

/// Returns the file of the checkpoint folder that holds the flags of its run.
std::filesystem::path run_flags_file(const CommandLine& line);

/// Writes that file, with the flags that change the result of a training.
/// @throw c10::Error naming the file and the cause.
void write_run_flags(const CommandLine& line);

/// Compares the command line of a resumed run with that file, if it exists. Another value would be
/// ignored in favor of the checkpoint's, or would not fit it. `schedule_span` checks the number of
/// epochs.
/// @throw UsageError naming the first flag that has another value.
void check_run_flags(const CommandLine& line);

}  // namespace train
