#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sconce/metrics/confusion_matrix.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

class BestEffort;  // warns once if a file cannot be written; defined in src/

/// Draws a confusion matrix as a 600-pixel-wide SVG. The SVG is self-contained and adapts its
/// colors to the viewer's light or dark theme. Cells with a larger share of the row total are
/// darker. If every count fits in its cell, the cells show the counts.
/// Python: scikit-learn's `ConfusionMatrixDisplay`, and torchmetrics'
/// `MulticlassConfusionMatrix.plot`.
struct ConfusionMatrixChart {
  std::string title = "Confusion matrix";  ///< title above the matrix
  /// Counts of shape `(C, C)` with C from 2 to 100, on any device. Each row represents a true
  /// class, and each column represents a predicted class. Counts must not be negative.
  torch::Tensor counts = {};
  std::vector<std::string> class_names =
      {};  ///< class names, which may contain any bytes; if empty, the classes are numbered from 0

  /// Returns the SVG, which is well-formed XML 1.0 in UTF-8. Copies the counts to the host.
  /// @throw c10::Error if the counts or the number of names do not meet the requirements above.
  std::string svg() const;

  /// Writes the SVG to a file in an existing folder. The file becomes visible only once it is
  /// complete.
  /// @throw c10::Error in the same cases as `svg`, or if the file cannot be written. In that case,
  /// the message contains the file name and the cause.
  void save(const std::filesystem::path& file) const;
};

/// On rank 0, draws a confusion matrix after each test. If the file cannot be written, or if the
/// matrix is empty because it is not in `TrainerOptions::metrics`, the logger warns once and
/// training continues.
class ConfusionMatrixLogger : public TrainerCallback {
 public:
  /// Constructs a logger for `matrix`, which must also be in `TrainerOptions::metrics`. After a
  /// test, `matrix` contains counts summed over all ranks. `file` and `class_names` have the same
  /// meaning as in `ConfusionMatrixChart`.
  /// @throw c10::Error if `matrix` is null or has too many classes to draw, or if the number of
  /// class names differs from the number of classes.
  ConfusionMatrixLogger(std::filesystem::path file,
                        std::shared_ptr<metrics::ConfusionMatrix> matrix,
                        std::vector<std::string> class_names = {});

  /// Draws the matrix. Does nothing if no test ran during the epoch.
  void on_epoch_end(Fit& fit) override;

 private:
  std::filesystem::path file_;
  std::shared_ptr<metrics::ConfusionMatrix> matrix_;
  std::vector<std::string> class_names_;
  std::shared_ptr<BestEffort> effort_;
};

}  // namespace sconce
