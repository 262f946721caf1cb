#pragma once

#include <ostream>

#include "command_line.hpp"

namespace train {

/// Prints a line for each image or table row. The line starts with the name of the image, or with
/// the file and the row number. Next come at most five classes with their probabilities, highest
/// first, or the value predicted by a regression model. All files are read before anything is
/// printed.
/// @throw c10::Error with the path of the weights file or program if it was not written by
/// sconce-train.
/// @throw c10::Error with the path of the first file that cannot be read.
void predict(const PredictLine& line, std::ostream& out);

}  // namespace train
