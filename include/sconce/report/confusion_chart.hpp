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

/// A picture of a confusion matrix, 600 pixels wide, as an SVG that needs no other file and follows
/// the viewer's choice of light or dark. A cell is as dark as its part of the row, and shows its
/// count where all counts have room. Python: scikit-learn's `ConfusionMatrixDisplay`, and
/// `MulticlassConfusionMatrix.plot` of torchmetrics.
struct ConfusionMatrixChart {
  std::string title = "Confusion matrix";
  torch::Tensor counts =
      {};  ///< (C, C), C from 2 to 100, numbers of 0 or more on any device, which
           ///< are read: a row for each true class, a column for each predicted
  std::vector<std::string> class_names = {};  ///< any bytes; empty: the numbers from 0 on

  /// Returns the file's text: well-formed XML 1.0, in UTF-8.
  /// @throw c10::Error if the counts or the number of names are not as above.
  std::string svg() const;

  /// Writes it. The file is whole or not there; its folder must be there.
  /// @throw c10::Error as `svg`, or naming the file and the cause.
  void save(const std::filesystem::path& file) const;
};

/// Draws a confusion matrix anew after each test, on rank 0. Where it cannot be written there is
/// one warning, and the training goes on.
class ConfusionChart : public TrainerCallback {
 public:
  /// `matrix` is one of `TrainerOptions::metrics` too, which holds the test's sums of all ranks
  /// when an epoch is over; `file` and `class_names` are as in `ConfusionMatrixChart`.
  /// @throw c10::Error if there is no matrix, or if its classes cannot be drawn or are not as many
  /// as the names.
  ConfusionChart(std::filesystem::path file, std::shared_ptr<metrics::ConfusionMatrix> matrix,
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
