#pragma once

#include <ostream>

#include "command_line.hpp"

namespace train {

/// Prints a line for each picture: its name, then at most five classes with their probabilities,
/// the highest first. Reads all pictures before it prints.
/// @throw c10::Error naming the weights file if no training wrote it.
/// @throw c10::Error naming the first picture that cannot be read.
void predict(const PredictLine& line, std::ostream& out);

}  // namespace train
