#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sconce/io/csv.hpp"

namespace train {

/// How a picture or a row of a table becomes the input of a model, and what the model answers.
struct Task {
  /// Of a picture: (channels, height, width); one channel is gray. Of a row: its number of
  /// features.
  std::vector<int64_t> shape = {};
  /// Of each channel's bytes, or of each feature and then of a regression's target; it is
  /// subtracted.
  std::vector<double> mean = {};
  std::vector<double> std = {};           ///< of the same; the difference is divided by it
  std::vector<std::string> classes = {};  ///< empty for a regression
  std::vector<sconce::io::CsvColumn> columns = {};  ///< of a table, with the target's
  std::string target = {};                          ///< name of the target's column

  bool is_table() const { return !columns.empty(); }
  bool is_regression() const { return is_table() && classes.empty(); }
  /// Returns the number of outputs of the model.
  int64_t outputs() const { return is_regression() ? 1 : static_cast<int64_t>(classes.size()); }
};

}  // namespace train
