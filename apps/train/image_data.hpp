#pragma once

#include <ATen/core/Tensor.h>

#include "command_line.hpp"
#include "images.hpp"
#include "sconce/training/batch.hpp"

namespace train {

/// The images to train and to test on, in batches (N, C, H, W), float32 on a device with the
/// training images' mean 0 and deviation 1, and their classes (N,).
struct ImageData {
  Images images;
  sconce::BatchLoader train;  ///< of this rank; each epoch in another order
  sconce::BatchLoader test;   ///< of this rank
  int64_t train_size = 0;     ///< of all ranks
  int64_t test_size = 0;      ///< of all ranks
  int64_t left_out = 0;       ///< pictures that --skip-bad passed over
};

/// Whether `--data` names a folder of pictures: not one that holds IDX files.
bool is_picture_folder(const std::string& data);

/// Opens what `--data` names: "digits", which sconce brings; "fashion-mnist", where Debian's
/// package of it is installed; the four IDX files of a folder (MNIST's names, with or without .gz),
/// all of which go to the device; or a folder of pictures, which are read as they are needed.
/// @throw c10::Error if Fashion-MNIST is not installed, saying how to get it, or if an IDX file is
/// missing or not what it should be, naming it.
/// @throw std::runtime_error naming a folder or a picture that is not what it should be.
ImageData open_images(const CommandLine& line, const sconce::distributed::ProcessGroup& group);

}  // namespace train
