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
class AppendFile;  // file to which only complete records are appended; defined in src/
}  // namespace sconce

namespace sconce::utils::tensorboard {

/// Options for `SummaryWriter`.
struct SummaryWriterOptions {
  /// Step at which a resumed run continues. TensorBoard hides previously written values for this
  /// step and all later steps.
  std::optional<int64_t> purge_step = {};
};

/// Options for `SummaryWriter::add_scalar`.
struct AddScalarOptions {
  std::optional<double> walltime = {};  ///< seconds since 1970; defaults to the current time
};

/// Options for `SummaryWriter::add_image`.
struct AddImageOptions {
  std::optional<double> walltime = {};  ///< seconds since 1970; defaults to the current time
  /// Dimension letters (CHW, HW, or NCHW), in any order and in either upper or lower case.
  std::string dataformats = "CHW";
};

/// Options for `SummaryWriter::add_images`.
struct AddImagesOptions {
  std::optional<double> walltime = {};  ///< seconds since 1970; defaults to the current time
  std::string dataformats = "NCHW";     ///< as in `AddImageOptions`
};

/// Options for `SummaryWriter::add_histogram`.
struct AddHistogramOptions {
  /// Bin edges in ascending order, as in `numpy.histogram`. Each bin includes its left edge, and
  /// the last bin also includes its right edge. Values outside the bins are not counted. If empty,
  /// uses Python's "tensorflow" bins: 1,548 bins from -1e20 to 1e20, each 10% wider than the next
  /// bin toward 0.
  std::vector<double> bins = {};
  std::optional<double> walltime = {};  ///< seconds since 1970; defaults to the current time
  /// Approximate maximum number of bins. If there are more bins, neighboring bins are merged.
  std::optional<int64_t> max_bins = {};
};

/// Options for `SummaryWriter::add_histogram_raw`.
struct AddHistogramRawOptions {
  std::optional<double> walltime = {};  ///< seconds since 1970; defaults to the current time
};

/// A precomputed histogram whose members correspond to the arguments of Python's
/// `add_histogram_raw`.
struct RawHistogram {
  double min = 0;                          ///< smallest value
  double max = 0;                          ///< largest value
  double num = 0;                          ///< number of values
  double sum = 0;                          ///< sum of the values
  double sum_squares = 0;                  ///< sum of the squared values
  std::vector<double> bucket_limits = {};  ///< right edge of each bucket, ascending
  std::vector<double> bucket_counts = {};  ///< number of values in each bucket
};

/// Options for `SummaryWriter::add_text`.
struct AddTextOptions {
  std::optional<double> walltime = {};  ///< seconds since 1970; defaults to the current time
};

/// A hyperparameter value. Values of type `size_t` must be cast to `int64_t`.
using HParam = std::variant<bool, int64_t, double, std::string>;

/// A list of hyperparameter names and values, such as `{{"lr", 0.1}, {"optimizer", "adamw"}}`.
/// Python: `hparam_dict`.
using HParams = std::vector<std::pair<std::string, HParam>>;

/// Options for `SummaryWriter::add_hparams`.
struct AddHParamsOptions {
  /// All possible values for each hyperparameter, which must have the hyperparameter's type.
  std::map<std::string, std::vector<HParam>> hparam_domain_discrete = {};
  std::string run_name = {};  ///< folder name within the log_dir; defaults to the current time
  int64_t global_step = 0;    ///< step of the metrics
};

/// Writes an event file for TensorBoard that contains scalars, images, histograms, text, and
/// hyperparameters. The file name contains the time and sorts after existing files in the folder,
/// because readers process files in name order. After a failed write, the file contains only
/// complete records. If the process is killed, the last record may be truncated. Readers ignore
/// truncated records. Tensors may be on any device. A GPU tensor is copied to the CPU once. If a
/// string is not valid UTF-8, the member functions throw a c10::Error. An error leaves pending
/// values and files unchanged. Python: `torch.utils.tensorboard.SummaryWriter`, which also supports
/// audio, video, meshes, graphs, embeddings, and curves.
class SummaryWriter {
 public:
  /// Prepares an event file in `log_dir`. The first `flush` creates the file.
  explicit SummaryWriter(std::filesystem::path log_dir, SummaryWriterOptions options = {});
  /// Flushes. Errors are ignored, and pending values are lost.
  ~SummaryWriter();
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  /// Stores a scalar for the next flush. As in Python, the value is stored as float32.
  /// @throw c10::Error if the tag is not UTF-8.
  void add_scalar(const std::string& tag, double scalar_value, int64_t global_step = 0,
                  AddScalarOptions options = {});

  /// Stores an image as a PNG for the next flush. `img_tensor` is either a uint8 tensor or a tensor
  /// of another type with values from 0 to 1. Values of types other than uint8 are multiplied by
  /// 255, clamped to [0, 255], and rounded down. NaN becomes 0. The image has 1 channel (gray), 2
  /// (gray and alpha), 3 (RGB), or 4 (RGB and alpha). If `dataformats` contains N, images with 1 or
  /// 3 channels are arranged in a grid with up to 8 columns.
  /// @throw c10::Error if:
  /// - `dataformats` contains other letters or does not match the number of dimensions;
  /// - the number of channels is not supported;
  /// - the number of pixels is 0 or at least 2^28;
  /// - the tensor is sparse, complex, or on the meta device.
  void add_image(const std::string& tag, const torch::Tensor& img_tensor, int64_t global_step = 0,
                 const AddImageOptions& options = {});

  /// Stores a batch of images as a single grid for the next flush, like `add_image` with N in
  /// `dataformats`.
  /// @throw c10::Error in the same cases as `add_image`.
  void add_images(const std::string& tag, const torch::Tensor& img_tensor, int64_t global_step = 0,
                  const AddImagesOptions& options = {});

  /// Stores a histogram of the tensor's values for the next flush. Values are converted to float64
  /// before counting. In Python, `bins` may also be a bin count or the name of a NumPy binning
  /// rule.
  /// @throw c10::Error if:
  /// - no values are within the bins, or a value is NaN or infinite;
  /// - there are fewer than two edges, an edge is NaN, or the edges are not in ascending order;
  /// - `max_bins` is below 1;
  /// - the tensor is sparse, complex, or on the meta device.
  void add_histogram(const std::string& tag, const torch::Tensor& values, int64_t global_step = 0,
                     const AddHistogramOptions& options = {});

  /// Stores a precomputed histogram for the next flush.
  /// @throw c10::Error if the number of limits differs from the number of counts.
  void add_histogram_raw(const std::string& tag, const RawHistogram& raw, int64_t global_step = 0,
                         AddHistogramRawOptions options = {});

  /// Stores text for the next flush. TensorBoard displays the text as Markdown.
  void add_text(const std::string& tag, const std::string& text_string, int64_t global_step = 0,
                AddTextOptions options = {});

  /// Immediately writes a run's hyperparameters and final metrics to a file in the `run_name`
  /// subfolder of `log_dir`. TensorBoard's HPARAMS tab shows one row per folder. As in Python, a
  /// bool is stored as 1 or 0.
  /// @throw c10::Error if:
  /// - a name is duplicated;
  /// - `hparam_domain_discrete` contains an unknown name or a value of the wrong type;
  /// - the file cannot be written.
  void add_hparams(const HParams& hparam_dict,
                   const std::vector<std::pair<std::string, double>>& metric_dict,
                   const AddHParamsOptions& options = {});

  /// Writes all values added since the last flush in a single write. The first flush creates the
  /// folder and the file.
  /// @throw c10::Error, with the file in the message, if the file cannot be written.
  /// The file is then left unchanged, and the next flush tries again.
  void flush();

  /// Flushes and closes the file. As in Python, values added later are written to a new file.
  /// @throw c10::Error in the same cases as `flush`.
  void close();

 private:
  void keep(int64_t global_step, std::optional<double> walltime, const std::string& summary);

  std::filesystem::path log_dir_;
  std::string pending_ = {};  // complete records
  std::unique_ptr<AppendFile> file_;
};

}  // namespace sconce::utils::tensorboard
