#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sconce/report/summary_writer.hpp"

namespace sconce {

/// A value at a step of a run. Python: `ScalarEvent` of TensorBoard.
struct ScalarEvent {
  std::string tag = {};  ///< Name, such as "loss"
  double value = 0;      ///< Value, also nan or inf
  int64_t step = 0;      ///< Step of the optimizer, counted from 1 over all epochs
  int64_t epoch = 0;     ///< Epoch, counted from 1
  double wall_time = 0;  ///< Seconds since 1970
};

/// Options of `ScalarWriter`.
struct ScalarFilesOptions {
  /// Number of steps that a resumed run has already done. Scalars of later steps are dropped.
  /// Without a value the run is new, and its folder must hold no scalars.
  std::optional<int64_t> resume_step = {};
};

/// Writes the scalars of a run to two kinds of files in a folder: `events.out.tfevents.*` for
/// TensorBoard (see `SummaryWriter`), and `scalars.csv`, which has a line for each scalar: step,
/// epoch, tag, value, wall_time. Numbers have all their digits. If the process is killed, the last
/// line may be cut off; a resumed run drops it. Only one process at a time may write to a folder.
class ScalarWriter {
 public:
  /// Reads the files in the folder, and writes nothing.
  /// @throw c10::Error naming the file if:
  /// - a new run's folder holds scalars;
  /// - a resumed run's scalars are damaged or of another program;
  /// - a resumed run starts at step 0, and there are scalars of a later epoch than the first.
  explicit ScalarWriter(std::filesystem::path folder, const ScalarFilesOptions& options = {});
  /// Flushes. An error is ignored, and its scalars are lost.
  ~ScalarWriter();
  ScalarWriter(const ScalarWriter&) = delete;
  ScalarWriter& operator=(const ScalarWriter&) = delete;

  /// Keeps a scalar for the next flush.
  /// @throw c10::Error if the tag is not UTF-8 or has control characters.
  void add(const ScalarEvent& scalar);

  /// Writes the scalars since the last flush, with one write for each file. The first flush creates
  /// the folder and the files.
  /// @throw c10::Error naming the file if one cannot be written. The file is then unchanged, the
  /// other file is written, and the next flush tries again.
  void flush();

 private:
  class Csv;

  std::filesystem::path folder_;
  std::unique_ptr<Csv> csv_;
  utils::tensorboard::SummaryWriter events_;
};

}  // namespace sconce
