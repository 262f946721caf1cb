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

/// Makes the file's folder, and finds out before the training whether the file can be written at
/// its end; one that is there stays as it is, and nothing is left beside.
/// @throw c10::Error that begins with the flag and names the file and the cause.
void check_writable(const std::filesystem::path& file, const std::string& flag);

/// The same for the files that `write_results` will write, and for the trace.
/// @throw c10::Error that begins with the flag and names the file and the cause.
void check_results_writable(const CommandLine& line);

/// Returns the metrics of a run as text, a line an epoch.
std::string metrics_text(const std::vector<sconce::EpochMetrics>& epochs);

/// Writes what the run came to: the metrics, which have room where the weights have none, and the
/// weights that were tested. Where one fails the other is written all the same. A file is whole or
/// not there, and until it is one of an earlier run stays as it was.
/// @throw c10::Error naming the file and the cause.
void write_results(const CommandLine& line, const TrainedModel& model,
                   sconce::optim::ExponentialMovingAverage* ema, const sconce::FitResult& result);

}  // namespace train
