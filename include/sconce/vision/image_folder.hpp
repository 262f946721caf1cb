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

/// Returns whether a name ends in .png, .jpg or .jpeg, in upper or lower case. The file is not
/// looked at. Python: `torchvision.datasets.folder.is_image_file(path)`, which knows further kinds.
bool is_image_file(const std::filesystem::path& path);

/// A picture's file and the index of its class.
struct ImageSample {
  std::filesystem::path path = {};
  int64_t target = 0;
};

/// The options of `ImageFolder`.
struct ImageFolderOptions {
  /// Called with each picture `(C, H, W)`, uint8, and the item's generator, from several threads.
  /// Pictures of several sizes need one that makes them the same size before a `DataLoader` can
  /// stack them.
  transforms::Compose transform = transforms::Compose();

  /// The channels. torchvision's loader of pictures converts to RGB, too.
  ImageReadMode mode = ImageReadMode::rgb;

  ImageLimits limits = ImageLimits();  ///< of each picture
};

/// The pictures of a folder in which each subfolder is a class, for a `DataLoader`. Classes and the
/// pictures of a class are sorted by the bytes of their names. Pictures are what `is_image_file`
/// takes for one. Other files, and names that begin with a dot, are ignored. A class may be a link
/// to a folder. Files are read when an item is. Python: `torchvision.datasets.ImageFolder(root,
/// transform)`, which also looks into the folders of a class and at names that begin with a dot.
class ImageFolder {
 public:
  /// Lists the folder.
  /// @throw c10::Error naming a folder or file if:
  /// - the folder cannot be read or has no subfolder;
  /// - a class has no picture, contains a folder, or has a name that is not UTF-8 or has control
  ///   characters;
  /// - a link is broken, or leads to a folder around it.
  explicit ImageFolder(const std::filesystem::path& root, ImageFolderOptions options = {});

  /// Returns the number of pictures. Python: `len(folder)`.
  int64_t size() const { return static_cast<int64_t>(samples_.size()); }

  /// Reads a picture. Returns it transformed, and its class, int64 (). A random transform needs the
  /// generator, which a `DataLoader` gives.
  /// @throw c10::Error as `read_image` and the transform do, or if there is no such item.
  data::Dataset get(int64_t index, const at::Generator& generator = {}) const;

  /// Returns the names of the classes: `classes()[target]` is the name of a class.
  const std::vector<std::string>& classes() const { return classes_; }

  /// Returns the file and the class of each picture.
  const std::vector<ImageSample>& samples() const { return samples_; }

  /// Returns the class of each picture, int64 (N,).
  torch::Tensor targets() const;

 private:
  ImageFolderOptions options_;
  std::vector<std::string> classes_ = {};
  std::vector<ImageSample> samples_ = {};
};

}  // namespace sconce::vision
