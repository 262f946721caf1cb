#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace sconce {
class AppendFile;  // grows by whole pieces, in src/
}  // namespace sconce

namespace sconce::utils::tensorboard {

/// What a `SummaryWriter` begins with.
struct SummaryWriterOptions {
  /// A run that goes on at this step hides what an earlier writer of the folder wrote from it on.
  std::optional<int64_t> purge_step = {};
};

/// What goes along with one scalar.
struct AddScalarOptions {
  std::optional<double> walltime = {};  ///< seconds since 1970; empty: now
};

/// Writes scalars into an event file that TensorBoard reads. The file is named after the time,
/// always later than those in the folder, since readers take them in the order of their names. It
/// has whole records, whatever fails; a killed process may leave a cut one at its end, which
/// readers pass over. Python: `torch.utils.tensorboard.SummaryWriter`, of which this has scalars.
class SummaryWriter {
 public:
  explicit SummaryWriter(std::filesystem::path log_dir, SummaryWriterOptions options = {});
  /// Flushes; what fails here is lost, and nobody is told.
  ~SummaryWriter();
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  /// Keeps a scalar for the next flush. The file has it as float32, as Python's.
  /// @throw c10::Error if the tag is not UTF-8.
  void add_scalar(const std::string& tag, double scalar_value, int64_t global_step,
                  AddScalarOptions options = {});

  /// Writes all scalars since the last flush in one piece; the first makes the folder and the file.
  /// @throw c10::Error naming the file if it cannot be written. Nothing of the piece is in it then,
  /// and the next flush tries again.
  void flush();

 private:
  std::filesystem::path log_dir_;
  std::string pending_ = {};  // whole records
  std::unique_ptr<AppendFile> file_;
};

}  // namespace sconce::utils::tensorboard
