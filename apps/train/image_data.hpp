#pragma once

#include <string>

#include "sconce/data/batches.hpp"

namespace train {

/// Images `(N, 1, H, W)`, float32 with the training images' mean 0 and deviation 1, and their
/// classes.
struct ImageData {
  sconce::data::Dataset train;
  sconce::data::Dataset test;
  int64_t classes = 0;  ///< one more than the largest class of the training images
};

/// Reads "digits", which sconce brings; "fashion-mnist", where Debian's package of it is installed;
/// or the four IDX files of a folder (MNIST's names, with or without .gz).
/// @throw c10::Error if Fashion-MNIST is not installed, saying how to get it, or if a file is
/// missing or not what it should be, naming it.
ImageData load_images(const std::string& data);

}  // namespace train
