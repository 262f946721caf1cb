#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sconce/data/dataset.hpp"
#include "sconce/fwd.hpp"
#include "sconce/vision/image.hpp"
#include "sconce/vision/transforms.hpp"

namespace sconce::vision {

/// Returns whether a file name ends in .png, .jpg, or .jpeg, in upper or lower case. The file is
/// not opened.
/// Python: `torchvision.datasets.folder.is_image_file(path)`, which supports more formats.
bool is_image_file(const std::filesystem::path& path);

/// An image's file path and class index.
struct ImageSample {
  std::filesystem::path path = {};
  int64_t target = 0;
};

/// Options for `ImageFolder`.
struct ImageFolderOptions {
  /// Transform called with each image (a uint8 tensor of shape `(C, H, W)`) and the item's
  /// generator. The transform may be called from several threads concurrently. If images have
  /// different sizes, the transform must resize them to the same size so that a `DataLoader` can
  /// stack them.
  transforms::Compose transform = transforms::Compose();

  /// Channels of the images. By default, images are converted to RGB, as in torchvision.
  ImageReadMode mode = ImageReadMode::rgb;

  ImageLimits limits = ImageLimits();  ///< limits for each image
};

/// A `DataLoader` source for images in a folder with one subfolder per class. Classes are sorted by
/// name in byte order, as are the images in each class. A file is treated as an image if
/// `is_image_file` returns true. Other files and any files or folders whose names begin with a dot
/// are ignored. A class's subfolder may be a symbolic link to another folder. Files are read when
/// their items are requested.
/// Python: `torchvision.datasets.ImageFolder(root, transform)`, which also includes subfolders of a
/// class and names that begin with a dot.
class ImageFolder {
 public:
  /// Lists the folder's contents.
  /// @throw c10::Error, with a folder or file in the message, if:
  /// - the folder cannot be read or contains no subfolders;
  /// - a class contains no images, contains a folder, or has a name that is not UTF-8 or contains
  ///   control characters;
  /// - a link is broken or points to a folder that contains the link.
  explicit ImageFolder(const std::filesystem::path& root, ImageFolderOptions options = {});

  /// Returns the number of images. Python: `len(folder)`.
  int64_t size() const { return static_cast<int64_t>(samples_.size()); }

  /// Reads an image. Returns the transformed image and its class, an int64 tensor of shape `()`. A
  /// random transform requires the generator, which a `DataLoader` provides.
  /// @throw c10::Error in the same cases as `read_image` and the transform, or if `index` is out of
  /// range.
  data::Dataset get(int64_t index, const at::Generator& generator = {}) const;

  /// Returns the class names. `classes()[target]` is the name of class `target`.
  const std::vector<std::string>& classes() const { return classes_; }

  /// Returns each image's file and class.
  const std::vector<ImageSample>& samples() const { return samples_; }

  /// Returns the images' classes as an int64 tensor of shape `(N,)`.
  torch::Tensor targets() const;

 private:
  ImageFolderOptions options_;
  std::vector<std::string> classes_ = {};
  std::vector<ImageSample> samples_ = {};
};

}  // namespace sconce::vision
