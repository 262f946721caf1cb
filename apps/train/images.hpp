#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace train {

/// What a model takes and answers: how a picture becomes its input, and the names of its classes.
struct Images {
  std::vector<int64_t> shape = {};  ///< of one: (channels, height, width); one channel is grey
  std::vector<double> mean = {};    ///< of each channel's bytes, which is taken from them
  std::vector<double> std = {};     ///< what they are divided by then
  std::vector<std::string> classes = {};
};

}  // namespace train
