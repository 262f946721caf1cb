#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "sconce/data/dataset.hpp"
#include "sconce/fwd.hpp"

namespace sconce::vision {

/// Options for `read_idx`.
struct IdxOptions {
  /// Maximum size of a tensor, in bytes. By default, the tensor size is limited only by the file
  /// size. A gzipped file can expand to 1032 times its size.
  std::optional<int64_t> max_bytes = {};
};

/// Reads a file in MNIST's IDX format into a contiguous CPU tensor with the shape and type
/// specified in the file. Gzip compression is detected from the file's contents. Supports 0 to 255
/// dimensions and the types uint8, int8, int16, int32, float32, and float64.
///
/// If the header specifies more data than a file of that size can contain, no memory is allocated
/// for the data.
/// Python: `torchvision.datasets.mnist.read_sn3_pascalvincent_tensor(path)`.
/// @throw c10::Error, with the file, the field, and the expected and actual values in the message,
/// if:
/// - `file` is missing, unreadable, or not a regular file;
/// - the header is truncated, is not an IDX header, or specifies more than 2^63 - 1 bytes;
/// - the tensor would be larger than `max_bytes`;
/// - the contents are shorter or longer than specified in the header;
/// - the gzip stream is truncated or corrupted.
torch::Tensor read_idx(const std::filesystem::path& file, const IdxOptions& options = {});

/// Reads images and their labels with `read_idx(file)`. The result is on the CPU. `data` contains
/// the images as a tensor of shape `(N, ...)`, unscaled and in the file's type. `target` contains
/// the labels as an int64 tensor of shape `(N,)`.
/// Python: `torchvision.datasets.mnist.read_image_file` and `read_label_file`.
/// @throw c10::Error if:
/// - `read_idx(file)` throws for either file;
/// - the images have no first dimension;
/// - the labels are not one-dimensional (for example because the files are swapped) or do not have
///   an integer type;
/// - the number of labels differs from the number of images, or a label is negative.
data::Dataset read_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                       const IdxOptions& options = {});

}  // namespace sconce::vision
