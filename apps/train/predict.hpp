#pragma once

#include <ostream>

#include "command_line.hpp"

namespace train {

/// Prints a line for each image or table row. The line starts with the name of the image, or with
/// the file and the row number. The name or number is followed by up to five classes with their
/// probabilities, highest first, or by the value that a regression model predicts. All files are
/// read before anything is printed.
/// @throw c10::Error with the path of the weights file or program if it was not written by
/// sconce-train.
/// @throw c10::Error with the path of the first file that cannot be read.
void predict(const PredictLine& line, std::ostream& out);

}  // namespace train
