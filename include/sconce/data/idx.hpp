#pragma once

#include <filesystem>

#include "sconce/data/dataset.hpp"
#include "sconce/fwd.hpp"

namespace sconce::data {

/// Reads one file in the IDX format of MNIST, plain or gzipped (its content decides, not its name),
/// into a contiguous CPU tensor of the file's shape and type: any rank from 0 to 255; uint8, int8,
/// int16, int32, float32 or float64.
///
/// A header that claims more than a file of that size can hold costs no memory.
/// Python: `torchvision.datasets.mnist.read_sn3_pascalvincent_tensor(path)`.
/// @throw c10::Error, naming the file, the field, what was expected and what was found, if `file`
/// is missing, unreadable or no regular file, if its header is cut short, is not IDX or names a
/// shape beyond 2^63 - 1 bytes, if the content is shorter or longer than the header says, or if
/// the gzip stream is cut short or corrupted.
torch::Tensor read_idx(const std::filesystem::path& file);

/// Reads images and their labels, each as `read_idx(file)` does: `data` is the images (N, ...) in
/// the file's own type and range (nothing is scaled), `target` the labels (N,) as int64, both on
/// the CPU. Python: `torchvision.datasets.mnist.read_image_file` and `read_label_file`.
/// @throw c10::Error if `read_idx(file)` refuses either file, if the images have no first
/// dimension, if the labels are not of rank 1 (as when the two files are swapped), not of an
/// integer type or not as many as the images, or if a label is negative.
Dataset read_idx(const std::filesystem::path& images, const std::filesystem::path& labels);

}  // namespace sconce::data
