#pragma once

#include <ostream>

#include "command_line.hpp"

namespace train {

/// Prints a line for each picture, or row of a table: its name, or the file and its number, then at
/// most five classes with their probabilities, the highest first, or the number that a regression
/// predicts. Reads all files before it prints.
/// @throw c10::Error naming the file of weights or a program if no training wrote it.
/// @throw c10::Error naming the first file that cannot be read.
void predict(const PredictLine& line, std::ostream& out);

}  // namespace train
