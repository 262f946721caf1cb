#pragma once

#include <ostream>

#include "command_line.hpp"

namespace train {

/// Prints a line for each picture: its name, then the classes with their probabilities, the highest
/// first and at most five. Reads every picture before it prints.
/// @throw c10::Error naming the weights' file if it is none of a training.
/// @throw PictureError naming the first picture that cannot be read.
void predict(const PredictLine& line, std::ostream& out);

}  // namespace train
