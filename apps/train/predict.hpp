#pragma once

#include <ostream>

#include "command_line.hpp"

namespace train {

/// Prints a line for each picture or table row: its name, or the file and the row number, then at
/// most five classes with their probabilities, the highest first, or the number that a regression
/// predicts. All files are read before anything is printed.
/// @throw c10::Error naming the weights file or program if sconce-train did not write it.
/// @throw c10::Error naming the first file that cannot be read.
void predict(const PredictLine& line, std::ostream& out);

}  // namespace train
