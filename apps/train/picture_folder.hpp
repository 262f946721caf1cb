#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "images.hpp"
#include "sconce/data/dataset.hpp"

namespace train {

/// A picture's file and the index of its class.
struct PictureFile {
  std::filesystem::path path = {};
  int64_t target = 0;
};

/// The pictures of a folder, by class and then by name.
struct PictureFolder {
  std::vector<std::string> classes = {};
  std::vector<PictureFile> files = {};
};

/// Returns whether a folder has any of MNIST's four IDX files, plain or gzipped.
bool has_idx_files(const std::filesystem::path& folder);

/// Lists the pictures of a folder in which each subfolder is a class. Classes and pictures are
/// sorted by the bytes of their names. Pictures are files that end in .png, .jpg or .jpeg, in upper
/// or lower case. Other files, and names that begin with a dot, are ignored. A class may be a link
/// to a folder.
/// @throw std::runtime_error naming the folder if:
/// - it cannot be read, has IDX files too, or has fewer than two classes;
/// - a class has no picture, contains a folder, or has a name that is not UTF-8 or has control
///   characters;
/// - a link is broken, or leads to a folder around it.
PictureFolder list_pictures(const std::filesystem::path& folder);

/// Reads the header of every picture.
/// @throw c10::Error for the first file that is not a picture.
void check_headers(const PictureFolder& folder);

/// Reads all pictures with `num_workers` further threads, and removes files that are damaged or not
/// pictures from the list. Returns their number.
/// @throw std::runtime_error naming a class of which no picture is left.
int64_t leave_out_bad(PictureFolder& folder, int num_workers);

/// Two parts of a folder's pictures, each in the folder's order.
struct PictureSplit {
  std::vector<PictureFile> train = {};
  std::vector<PictureFile> test = {};
};

/// Moves a fraction of each class, rounded, to the test part. The seed chooses the pictures. At
/// least one picture of each class remains for training. Python: `train_test_split(...,
/// stratify=target)` of scikit-learn, which draws other pictures.
/// @throw std::runtime_error if the test part would be empty.
PictureSplit split_pictures(const PictureFolder& folder, double test_fraction, uint64_t seed);

/// Reads a picture as uint8 of `shape`, (channels, height, width). Converts it to grey if that is
/// one channel, and resizes it without keeping its aspect ratio.
/// @throw c10::Error
at::Tensor load_picture(const std::filesystem::path& file, at::IntArrayRef shape);

/// A source of items: a picture (C, H, W), uint8, and its class (), int64.
/// Python: `torchvision.datasets.ImageFolder`.
class PictureItems {
 public:
  PictureItems(std::vector<PictureFile> files, std::vector<int64_t> shape)
      : files_(std::move(files)), shape_(std::move(shape)) {}

  int64_t size() const { return static_cast<int64_t>(files_.size()); }  ///< number of pictures

  /// Reads a picture from its file.
  /// @throw c10::Error
  sconce::data::Dataset get(int64_t index) const;

 private:
  std::vector<PictureFile> files_;
  std::vector<int64_t> shape_;
};

/// Sets the mean and the standard deviation of each channel. Reads at most 10,000 of the pictures,
/// which the seed chooses, with `num_workers` further threads.
/// @throw c10::Error
void measure_channels(Images& images, const std::vector<PictureFile>& files, uint64_t seed,
                      int num_workers);

}  // namespace train
