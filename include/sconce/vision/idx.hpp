#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "sconce/data/dataset.hpp"
#include "sconce/fwd.hpp"

namespace sconce::vision {

/// Options of `read_idx`.
struct IdxOptions {
  /// The largest tensor, in bytes. By default it is limited only by the size of its file, of which
  /// a gzipped one can unpack to 1032 times its size.
  std::optional<int64_t> max_bytes = {};
};

/// Reads one file in the IDX format of MNIST into a contiguous CPU tensor of the shape and type in
/// the file. The file may be gzipped, which is detected from its content, not its name. Supports
/// any rank from 0 to 255 and the types uint8, int8, int16, int32, float32 and float64.
///
/// If a header claims more data than a file of that size can hold, no memory is allocated for it.
/// Python: `torchvision.datasets.mnist.read_sn3_pascalvincent_tensor(path)`.
/// @throw c10::Error, naming the file, the field, what was expected and what was found, if:
/// - `file` is missing, unreadable or not a regular file;
/// - the header is cut short, is not IDX or has a shape beyond 2^63 - 1 bytes;
/// - the tensor would be larger than `max_bytes`;
/// - the content is shorter or longer than the header says;
/// - the gzip stream is cut short or corrupted.
torch::Tensor read_idx(const std::filesystem::path& file, const IdxOptions& options = {});

/// Reads images and their labels, each as `read_idx(file)` does. In the result, which is on the
/// CPU, `data` is the images `(N, ...)` in the type and range of the file (nothing is scaled), and
/// `target` is the labels `(N,)` as int64. Python: `torchvision.datasets.mnist.read_image_file` and
/// `read_label_file`.
/// @throw c10::Error if:
/// - `read_idx(file)` refuses either file;
/// - the images have no first dimension;
/// - the labels are not of rank 1 (as when the two files are swapped) or not of an integer type;
/// - the number of labels is not the number of images, or a label is negative.
data::Dataset read_idx(const std::filesystem::path& images, const std::filesystem::path& labels,
                       const IdxOptions& options = {});

}  // namespace sconce::vision
