#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace train {

/// How a picture becomes the input of a model, and the names of the model's classes.
struct Images {
  std::vector<int64_t> shape = {};  ///< (channels, height, width); one channel is grey
  std::vector<double> mean = {};    ///< of each channel's bytes; it is subtracted
  std::vector<double> std = {};     ///< of each channel's bytes; the difference is divided by it
  std::vector<std::string> classes = {};
};

}  // namespace train
