#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "model_file.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/training/fit_result.hpp"

namespace train {

constexpr auto metrics_name = "metrics.csv";        ///< in the `--out` folder
constexpr auto weights_name = "model.safetensors";  ///< in the `--out` folder

/// Checks before training starts that the file can be written when training ends. Creates the
/// file's folder, leaves an existing file unchanged, and leaves nothing else behind.
/// @throw c10::Error that starts with the flag and contains the file and the cause.
void check_writable(const std::filesystem::path& file, const std::string& flag);

/// Calls `check_writable` for the files that `write_results` writes and for the trace in `--out`.
/// @throw c10::Error that starts with the flag and contains the file and the cause.
void check_results_writable(const CommandLine& line);

/// Returns the metrics of a run as CSV, with one line per epoch.
std::string metrics_text(const std::vector<sconce::EpochMetrics>& epochs);

/// Writes the results requested by the flags. With `--out`, these are the metrics and the weights
/// that were tested. With `--export`, a program with these weights is also written. If one file
/// cannot be written, the other files still are. Each file is either complete or absent, and a file
/// from an earlier run is replaced only once the new file is complete.
/// @throw c10::Error for the first file that could not be written, with its path and the cause.
void write_results(const CommandLine& line, const TrainedModel& model,
                   sconce::optim::ExponentialMovingAverage* ema, const sconce::FitResult& result);

}  // namespace train
