#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "model_file.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/training/fit_result.hpp"

namespace train {

constexpr auto metrics_name = "metrics.csv";        ///< in the folder of `--out`
constexpr auto weights_name = "model.safetensors";  ///< in the folder of `--out`

/// Checks before the training that the file can be written at its end. Creates the file's folder,
/// leaves an existing file as it is, and leaves nothing else.
/// @throw c10::Error that begins with the flag and names the file and the cause.
void check_writable(const std::filesystem::path& file, const std::string& flag);

/// Calls `check_writable` for the files that `write_results` writes, and for the trace of `--out`.
/// @throw c10::Error that begins with the flag and names the file and the cause.
void check_results_writable(const CommandLine& line);

/// Returns the metrics of a run as CSV, with a line for each epoch.
std::string metrics_text(const std::vector<sconce::EpochMetrics>& epochs);

/// Writes the results that the flags ask for: with `--out` the metrics and the weights that were
/// tested, with `--export` these weights in a program. If a file cannot be written, the others
/// still are. A file is whole or not there, and replaces that of an earlier run only when it is
/// whole.
/// @throw c10::Error of the first file that could not be written, naming it and the cause.
void write_results(const CommandLine& line, const TrainedModel& model,
                   sconce::optim::ExponentialMovingAverage* ema, const sconce::FitResult& result);

}  // namespace train
