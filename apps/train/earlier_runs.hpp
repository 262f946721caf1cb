#pragma once

#include "command_line.hpp"

namespace train {

/// Checks that the folders of a run hold nothing of another run that it would replace, or that it
/// was told to, and that there is a run where its schedule is to be restarted. The results in
/// `--out` are those of the run that it resumes, if their metrics are those of the checkpoint's
/// epochs. Writes nothing.
/// @throw UsageError that names the flag, the folder and what helps.
/// @throw c10::Error if a checkpoint cannot be read.
void check_earlier_runs(const CommandLine& line);

}  // namespace train
