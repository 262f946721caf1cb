#pragma once

#include <filesystem>

#include "sconce/trainer.hpp"

namespace train {

/// The file of one run's metrics, one line an epoch. It appears whole at the end of the run or not
/// at all, and until then a file of an earlier run stays as it was.
class MetricsFile {
 public:
  /// Makes the folder, and in it the file that `write` will finish, so that a folder that cannot
  /// be written to is known before the training.
  /// @throw std::runtime_error naming the folder or file and the cause.
  explicit MetricsFile(const std::filesystem::path& folder);
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  ~MetricsFile();  ///< removes what was not finished

  /// Writes the metrics and puts the file in its place: `metrics.csv` in the folder.
  /// @throw std::runtime_error naming the file and the cause.
  void write(const sconce::FitResult& result);

 private:
  std::filesystem::path path_;
  std::filesystem::path unfinished_;
};

}  // namespace train
