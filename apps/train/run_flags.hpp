#pragma once

#include <filesystem>

#include "command_line.hpp"

namespace train {

/// The file of a checkpoint folder that holds the flags by which its run was begun.
std::filesystem::path run_flags_file(const CommandLine& line);

/// Writes that file: the flags that decide what a training comes to.
/// @throw c10::Error naming the file and the cause.
void write_run_flags(const CommandLine& line);

/// Checks the command line of a resumed run against that file, if it is there: another value would
/// be passed over for that of the checkpoint, or fit it ill. The number of epochs is not among
/// them: `schedule_span` checks it.
/// @throw UsageError naming the first flag that has another value.
void check_run_flags(const CommandLine& line);

}  // namespace train
