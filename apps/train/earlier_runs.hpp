#pragma once

#include "command_line.hpp"

namespace train {

/// Returns the path of the latest checkpoint in the `--checkpoint` folder, or an empty path.
std::filesystem::path latest_checkpoint(const CommandLine& line);

/// Checks that the run would not replace files of another run unless `--overwrite` allows it, that
/// `--export` would replace only a program, and that `--restart-schedule` has a run to continue.
/// Results in `--out` belong to the resumed run if their metrics match the epochs in the
/// checkpoint. Scalars belong to the resumed run if its checkpoint folder contains a run. This
/// function writes nothing.
/// @throw UsageError naming the flag and the path, and explaining what to do.
/// @throw c10::Error if a checkpoint cannot be read.
void check_earlier_runs(const CommandLine& line);

}  // namespace train
