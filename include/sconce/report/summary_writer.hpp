#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sconce/fwd.hpp"

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

/// Options of `SummaryWriter::add_image`.
struct AddImageOptions {
  std::optional<double> walltime = {};  ///< Seconds since 1970; the default is now
  /// A letter for each dimension: C, H, W; H, W; or N, C, H, W, in any order and case.
  std::string dataformats = "CHW";
};

/// Options of `SummaryWriter::add_images`.
struct AddImagesOptions {
  std::optional<double> walltime = {};  ///< Seconds since 1970; the default is now
  std::string dataformats = "NCHW";     ///< As in `AddImageOptions`
};

/// Options of `SummaryWriter::add_histogram`.
struct AddHistogramOptions {
  /// Edges of the bins, ascending, as numpy.histogram takes them: a bin contains its left edge, the
  /// last one both. Values outside them are not counted. Empty: Python's bins "tensorflow", 1,548
  /// of them, each 10% wider than the next one toward 0, from -1e20 to 1e20.
  std::vector<double> bins = {};
  std::optional<double> walltime = {};  ///< Seconds since 1970; the default is now
  /// With more bins than this, neighbors are merged until there are about as many.
  std::optional<int64_t> max_bins = {};
};

/// Options of `SummaryWriter::add_histogram_raw`.
struct AddHistogramRawOptions {
  std::optional<double> walltime = {};  ///< Seconds since 1970; the default is now
};

/// A histogram that was counted elsewhere: the arguments of Python's `add_histogram_raw`.
struct RawHistogram {
  double min = 0;                          ///< Smallest value
  double max = 0;                          ///< Largest value
  double num = 0;                          ///< Number of values
  double sum = 0;                          ///< Sum of the values
  double sum_squares = 0;                  ///< Sum of their squares
  std::vector<double> bucket_limits = {};  ///< Right edge of each bucket, ascending
  std::vector<double> bucket_counts = {};  ///< Number of values in each bucket
};

/// Options of `SummaryWriter::add_text`.
struct AddTextOptions {
  std::optional<double> walltime = {};  ///< Seconds since 1970; the default is now
};

/// Value of a hyperparameter. A size_t needs a cast to int64_t.
using HParam = std::variant<bool, int64_t, double, std::string>;

/// Hyperparameters by name, such as `{{"lr", 0.1}, {"optimizer", "adamw"}}`. Python: `hparam_dict`.
using HParams = std::vector<std::pair<std::string, HParam>>;

/// Options of `SummaryWriter::add_hparams`.
struct AddHParamsOptions {
  /// All values that a hyperparameter can have, of the type of its value.
  std::map<std::string, std::vector<HParam>> hparam_domain_discrete = {};
  std::string run_name = {};  ///< Name of a folder in the log_dir; empty: the time
  int64_t global_step = 0;    ///< Step of the metrics
};

/// Writes an event file for TensorBoard: scalars, images, histograms, texts and hyperparameters.
/// The name of the file contains the time, and sorts after the files in the folder, because readers
/// read them in the order of their names. A failed write leaves whole records; a killed process may
/// leave a cut last one, which readers ignore. Tensors may be on any device; one on a GPU is copied
/// to the CPU once. All texts must be UTF-8: each function throws c10::Error for others. An error
/// leaves what is kept and the files as they were. Python: `torch.utils.tensorboard.SummaryWriter`,
/// which also has audio, video, meshes, graphs, embeddings and curves.
class SummaryWriter {
 public:
  /// Prepares a file in `log_dir`, which the first `flush` creates.
  explicit SummaryWriter(std::filesystem::path log_dir, SummaryWriterOptions options = {});
  /// Flushes. An error is ignored, and what was kept is lost.
  ~SummaryWriter();
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  /// Keeps a scalar for the next flush. The file stores float32, as in Python.
  /// @throw c10::Error if the tag is not UTF-8.
  void add_scalar(const std::string& tag, double scalar_value, int64_t global_step = 0,
                  AddScalarOptions options = {});

  /// Keeps an image for the next flush, as PNG. `img_tensor` is uint8, or of another type with
  /// values from 0 to 1, which are multiplied by 255, cut to 0 to 255 and rounded down; NaN becomes
  /// 0. It has 1 (gray), 2 (gray and alpha), 3 (RGB) or 4 channels (RGB and alpha). With N in
  /// `dataformats`, images of 1 or 3 channels become one grid of up to 8 columns.
  /// @throw c10::Error if `dataformats` are other letters or of another number than the dimensions,
  /// if the number of channels is another, if there is no pixel or there are 2^28 or more, or if
  /// the tensor is sparse, complex or without values (meta).
  void add_image(const std::string& tag, const torch::Tensor& img_tensor, int64_t global_step = 0,
                 const AddImageOptions& options = {});

  /// Keeps a batch of images for the next flush, as one grid: `add_image` with N in `dataformats`.
  /// @throw c10::Error as `add_image`.
  void add_images(const std::string& tag, const torch::Tensor& img_tensor, int64_t global_step = 0,
                  const AddImagesOptions& options = {});

  /// Keeps a histogram of the tensor's values for the next flush. They are counted in float64.
  /// Python's `bins` also takes a number and the names of numpy's rules.
  /// @throw c10::Error if there is no value, or none within the bins; if a value is NaN or
  /// infinite; if the edges are fewer than two, not ascending or NaN; if `max_bins` is below 1; or
  /// if the tensor is sparse, complex or without values (meta).
  void add_histogram(const std::string& tag, const torch::Tensor& values, int64_t global_step = 0,
                     const AddHistogramOptions& options = {});

  /// Keeps a histogram that was counted elsewhere for the next flush.
  /// @throw c10::Error if there are not as many limits as counts.
  void add_histogram_raw(const std::string& tag, const RawHistogram& raw, int64_t global_step = 0,
                         AddHistogramRawOptions options = {});

  /// Keeps a text for the next flush. TensorBoard shows it as Markdown.
  void add_text(const std::string& tag, const std::string& text_string, int64_t global_step = 0,
                AddTextOptions options = {});

  /// Writes the hyperparameters of a run and the metrics that it reached, at once, as a file in the
  /// folder `run_name` within the log_dir. TensorBoard's tab HPARAMS shows a line for each such
  /// folder. As Python does, this stores a bool as 1 or 0.
  /// @throw c10::Error if a name appears twice, if `hparam_domain_discrete` has another name or a
  /// value of another type, or if the file cannot be written.
  void add_hparams(const HParams& hparam_dict,
                   const std::vector<std::pair<std::string, double>>& metric_dict,
                   const AddHParamsOptions& options = {});

  /// Writes what was added since the last flush with one write. The first flush creates the folder
  /// and the file.
  /// @throw c10::Error naming the file if it cannot be written. The file is then unchanged, and the
  /// next flush tries again.
  void flush();

  /// Flushes, and closes the file. What is added later goes to a new file, as in Python.
  /// @throw c10::Error as `flush`.
  void close();

 private:
  void keep(int64_t global_step, std::optional<double> walltime, const std::string& summary);

  std::filesystem::path log_dir_;
  std::string pending_ = {};  // whole records
  std::unique_ptr<AppendFile> file_;
};

}  // namespace sconce::utils::tensorboard
