#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sconce/report/summary_writer.hpp"

namespace sconce {

/// A scalar value at a single step of a run. Python: TensorBoard's `ScalarEvent`.
struct ScalarEvent {
  std::string tag = {};  ///< name, such as "loss"
  double value = 0;      ///< value, which may be NaN or inf
  int64_t step = 0;      ///< optimizer step, counted from 1 across all epochs
  int64_t epoch = 0;     ///< epoch, counted from 1
  double wall_time = 0;  ///< seconds since 1970
};

/// Options for `ScalarWriter`.
struct ScalarFilesOptions {
  /// Number of steps that a resumed run has already completed. Scalars from later steps are
  /// discarded. If empty, the run is new, and the folder must not contain scalars.
  std::optional<int64_t> resume_step = {};
};

/// Writes a run's scalars to a folder in two formats. `events.out.tfevents.*` files are for
/// TensorBoard (see `SummaryWriter`). `scalars.csv` contains one line per scalar, with the columns
/// step, epoch, tag, value, and wall_time. Numbers are written with full precision. If the process
/// is killed, the last line may be truncated. A resumed run discards the truncated line. Only one
/// process at a time may write to a folder.
class ScalarWriter {
 public:
  /// Reads the files in the folder without writing anything.
  /// @throw c10::Error, with the file in the message, if:
  /// - the folder of a new run contains scalars;
  /// - the scalars of a resumed run are damaged or were written by another program;
  /// - a resumed run starts at step 0, but the folder contains scalars from an epoch after the
  ///   first.
  explicit ScalarWriter(std::filesystem::path folder, const ScalarFilesOptions& options = {});
  /// Flushes. Errors are ignored, and the affected scalars are lost.
  ~ScalarWriter();
  ScalarWriter(const ScalarWriter&) = delete;
  ScalarWriter& operator=(const ScalarWriter&) = delete;

  /// Stores a scalar for the next flush.
  /// @throw c10::Error if the tag is not UTF-8 or contains control characters.
  void add(const ScalarEvent& scalar);

  /// Writes the scalars added since the last flush, with a single write per file. The first flush
  /// creates the folder and the files.
  /// @throw c10::Error, with the file in the message, if a file cannot be written.
  /// The file is then left unchanged, the other file is still written, and the next flush tries
  /// again.
  void flush();

 private:
  class Csv;

  std::filesystem::path folder_;
  std::unique_ptr<Csv> csv_;
  utils::tensorboard::SummaryWriter events_;
};

}  // namespace sconce
