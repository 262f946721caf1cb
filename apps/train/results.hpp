#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sconce/training/fit_result.hpp"

namespace train {

constexpr auto metrics_name = "metrics.csv";        ///< in the folder of `--out`
constexpr auto weights_name = "model.safetensors";  ///< in the folder of `--out`

/// Makes the file's folder, and finds out before the training whether the file can be written at
/// its end; one that is there stays as it is, and nothing is left beside.
/// @throw c10::Error that begins with the flag and names the file and the cause.
void check_writable(const std::filesystem::path& file, const std::string& flag);

/// Returns the metrics of a run as text, a line an epoch.
std::string metrics_text(const std::vector<sconce::EpochMetrics>& epochs);

/// Writes the metrics of a run. The file is whole or not there, and until it is
/// one of an earlier run stays as it was.
/// @throw c10::Error naming the file and the cause.
void write_metrics(const std::filesystem::path& file, const sconce::FitResult& result);

}  // namespace train
