#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sconce/metrics/confusion_matrix.hpp"
#include "sconce/training/trainer_callback.hpp"

namespace sconce {

class BestEffort;  // warns once of what cannot be written, in src/

/// A chart of a confusion matrix as an SVG of 600 pixels width. It needs no other file and uses the
/// light or dark colors that the viewer prefers. The darkness of a cell is its count's share of the
/// row. Counts are written into the cells if all of them fit. Python: scikit-learn's
/// `ConfusionMatrixDisplay`, and `MulticlassConfusionMatrix.plot` of torchmetrics.
struct ConfusionMatrixChart {
  std::string title = "Confusion matrix";  ///< Title above the matrix
  /// (C, C) with C from 2 to 100, on any device: a row for each true class, a column for each
  /// predicted class. No count is negative.
  torch::Tensor counts = {};
  std::vector<std::string> class_names =
      {};  ///< Any bytes; if empty, the classes are numbered from 0

  /// Returns the SVG, which is well-formed XML 1.0 in UTF-8. Copies the counts to the host.
  /// @throw c10::Error if the counts or the number of names are not as described above.
  std::string svg() const;

  /// Writes the SVG to a file in an existing folder. The file is whole or not there.
  /// @throw c10::Error like `svg`, or naming the file and the cause if it cannot be written.
  void save(const std::filesystem::path& file) const;
};

/// Draws a confusion matrix after each test, on rank 0. If the file cannot be written, or the
/// matrix has no counts because it is not in `TrainerOptions::metrics`, this warns once and
/// training continues.
class ConfusionMatrixLogger : public TrainerCallback {
 public:
  /// `matrix` must also be in `TrainerOptions::metrics`: it then holds the sums of all ranks after
  /// the test. `file` and `class_names` are as in `ConfusionMatrixChart`.
  /// @throw c10::Error if `matrix` is null, has too many classes to draw, or if the number of names
  /// is not its number of classes.
  ConfusionMatrixLogger(std::filesystem::path file,
                        std::shared_ptr<metrics::ConfusionMatrix> matrix,
                        std::vector<std::string> class_names = {});

  /// Does nothing after an epoch without a test.
  void on_epoch_end(Fit& fit) override;

 private:
  std::filesystem::path file_;
  std::shared_ptr<metrics::ConfusionMatrix> matrix_;
  std::vector<std::string> class_names_;
  std::shared_ptr<BestEffort> effort_;
};

}  // namespace sconce
