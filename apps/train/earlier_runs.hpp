#pragma once

#include "command_line.hpp"

namespace train {

/// Returns the file of the latest checkpoint in the `--checkpoint` folder, or an empty path.
std::filesystem::path latest_checkpoint(const CommandLine& line);

/// Checks that the run would replace no files of another run, unless `--overwrite` allows it, that
/// `--export` would replace only a program, and that `--restart-schedule` has a run to continue.
/// Results in `--out` belong to the resumed run if their metrics are those of the checkpoint's
/// epochs. Scalars belong to it if its checkpoint folder has a run. Writes nothing.
/// @throw UsageError that names the flag and the path, and says what to do.
/// @throw c10::Error if a checkpoint cannot be read.
void check_earlier_runs(const CommandLine& line);

}  // namespace train
