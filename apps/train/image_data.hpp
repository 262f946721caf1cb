#pragma once

#include <ATen/core/Tensor.h>

#include "command_line.hpp"
#include "images.hpp"
#include "sconce/training/any_batches.hpp"

namespace train {

/// The images for training and test, in batches: images (N, C, H, W), float32, on the device,
/// normalized so that the training images have mean 0 and deviation 1, or with what `--weights`
/// was trained with; and their classes (N,).
struct ImageData {
  Images images;
  sconce::AnyBatches train;  ///< of this rank, in another order in each epoch
  sconce::AnyBatches test;   ///< of this rank
  int64_t train_size = 0;    ///< of all ranks
  int64_t test_size = 0;     ///< of all ranks
  int64_t left_out = 0;      ///< number of pictures that --skip-bad left out
};

/// Returns whether `--data` names a folder of pictures and not one of IDX files.
bool is_picture_folder(const std::string& data);

/// Opens what `--data` names: "digits", which come with sconce; "fashion-mnist", Debian's package;
/// a folder with MNIST's four IDX files, plain or with .gz, which are copied to the device; or a
/// folder of pictures, which are read when they are needed. If `known` has a mean and a deviation,
/// the images are normalized with these.
/// @throw c10::Error if Fashion-MNIST is not installed, saying how to get it, or naming an IDX file
/// that is missing or damaged.
/// @throw std::runtime_error naming a folder or a picture that is not as expected.
ImageData open_images(const CommandLine& line, const sconce::distributed::ProcessGroup& group,
                      const Images& known = {});

}  // namespace train
