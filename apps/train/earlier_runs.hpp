#pragma once

#include "command_line.hpp"

namespace train {

/// Returns the path of the latest checkpoint in the `--checkpoint` folder, or an empty path if
/// there is none.
std::filesystem::path latest_checkpoint(const CommandLine& line);

/// Checks that the run would not replace files from another run unless `--overwrite` allows it,
/// that `--export` would replace only a program, and that a run to continue exists if
/// `--restart-schedule` is given. Results in `--out` belong to the resumed run if their metrics
/// match the epochs in the checkpoint. Scalars belong to the resumed run if its checkpoint folder
/// contains a run. This function does not write any files.
/// @throw UsageError with the flag, the path, and instructions on what to do.
/// @throw c10::Error if a checkpoint cannot be read.
void check_earlier_runs(const CommandLine& line);

}  // namespace train
