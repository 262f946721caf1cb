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

/// Options of `SummaryWriter`.
struct SummaryWriterOptions {
  /// Step at which a resumed run continues. TensorBoard hides earlier values from this step on.
  std::optional<int64_t> purge_step = {};
};

/// Options of `SummaryWriter::add_scalar`.
struct AddScalarOptions {
  std::optional<double> walltime = {};  ///< Seconds since 1970; the default is now
};

/// Writes scalars to an event file for TensorBoard. The name of the file contains the time, and
/// sorts after the files in the folder, because readers read them in the order of their names. A
/// failed write leaves whole records; a killed process may leave a cut last one, which readers
/// ignore. Python: `torch.utils.tensorboard.SummaryWriter`, here for scalars only.
class SummaryWriter {
 public:
  /// Prepares a file in `log_dir`, which the first `flush` creates.
  explicit SummaryWriter(std::filesystem::path log_dir, SummaryWriterOptions options = {});
  /// Flushes. An error is ignored, and its scalars are lost.
  ~SummaryWriter();
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  /// Keeps a scalar for the next flush. The file stores float32, as in Python.
  /// @throw c10::Error if the tag is not UTF-8.
  void add_scalar(const std::string& tag, double scalar_value, int64_t global_step,
                  AddScalarOptions options = {});

  /// Writes the scalars since the last flush with one write. The first flush creates the folder and
  /// the file.
  /// @throw c10::Error naming the file if it cannot be written. The file is then unchanged, and the
  /// next flush tries again.
  void flush();

 private:
  std::filesystem::path log_dir_;
  std::string pending_ = {};  // whole records
  std::unique_ptr<AppendFile> file_;
};

}  // namespace sconce::utils::tensorboard
