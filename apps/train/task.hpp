#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sconce/io/csv.hpp"

namespace train {

/// Specifies how an image or a table row is converted to the input of a model, and what the model
/// predicts.
struct Task {
  /// The shape of an image, (channels, height, width), where one channel means grayscale. For a
  /// row, the number of features.
  std::vector<int64_t> shape = {};
  /// The mean to subtract from each channel's bytes or, for a table, from each feature and then the
  /// target of a regression.
  std::vector<double> mean = {};
  std::vector<double> std = {};                     ///< deviations to divide by, in the same order
  std::vector<std::string> classes = {};            ///< empty for regression
  std::vector<sconce::io::CsvColumn> columns = {};  ///< columns of a table, including the target
  std::string target = {};                          ///< name of the target's column

  bool is_table() const { return !columns.empty(); }
  bool is_regression() const { return is_table() && classes.empty(); }
  /// Returns the number of outputs of the model.
  int64_t outputs() const { return is_regression() ? 1 : static_cast<int64_t>(classes.size()); }
};

}  // namespace train
