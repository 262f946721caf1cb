#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sconce/report/summary_writer.hpp"

namespace sconce {

/// One value of a run at one of its steps. Python: `ScalarEvent` of TensorBoard.
struct ScalarEvent {
  std::string tag = {};  ///< its name, such as "loss"
  double value = 0;
  int64_t step = 0;      ///< of the optimizer, counted from 1 over all epochs
  int64_t epoch = 0;     ///< counted from 1
  double wall_time = 0;  ///< seconds since 1970
};

/// Where a run's scalars begin.
struct ScalarFilesOptions {
  /// The steps that a resumed run has behind it; what the files have of later ones is dropped.
  /// Empty: a new run, whose folder must hold no scalars yet.
  std::optional<int64_t> resume_step = {};
};

/// The scalars of a run in a folder, for three kinds of readers: `events.out.tfevents.*` for
/// TensorBoard (see `SummaryWriter`), `scalars.csv` and `scalars.jsonl`. In these a line is one
/// scalar, so that metrics may come and go: step, epoch, tag, value, wall_time. Numbers have all
/// their digits; nan, inf and -inf, which JSON has not, are strings in `scalars.jsonl`, which
/// pandas and Python's `float` read as numbers. A killed process leaves at most a cut last line,
/// which a resumed run drops. One process at a time writes in a folder.
class ScalarFiles {
 public:
  /// Reads what the folder holds, and writes nothing.
  /// @throw c10::Error naming the file if a new run's folder holds scalars, or if those of a
  /// resumed run are damaged, of another program, or, while that begins again at step 0, of more
  /// than its first epoch.
  explicit ScalarFiles(std::filesystem::path folder, const ScalarFilesOptions& options = {});
  /// Flushes; what fails here is lost, and nobody is told.
  ~ScalarFiles();
  ScalarFiles(const ScalarFiles&) = delete;
  ScalarFiles& operator=(const ScalarFiles&) = delete;

  /// Keeps a scalar for the next flush.
  /// @throw c10::Error if the tag is not UTF-8, or has control characters.
  void add(const ScalarEvent& scalar);

  /// Writes all scalars since the last flush, in one piece for each file; the first makes the
  /// folder and the files.
  /// @throw c10::Error naming the file if one cannot be written. Nothing of the piece is in it
  /// then, the other files have theirs, and the next flush tries again.
  void flush();

 private:
  class Lines;

  std::filesystem::path folder_;
  std::unique_ptr<Lines> csv_;
  std::unique_ptr<Lines> jsonl_;
  utils::tensorboard::SummaryWriter events_;
};

}  // namespace sconce
