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

/// Whether a folder holds any of MNIST's four IDX files, plain or gzipped.
bool has_idx_files(const std::filesystem::path& folder);

/// Lists a folder of which each subfolder is a class, all sorted by their bytes. Files that end in
/// .png, .jpg or .jpeg, in any case, are its pictures; other files, and names that begin with a
/// dot, are passed over. A class may be a link to a folder.
/// @throw std::runtime_error naming the folder if it cannot be read or has IDX files too, if there
/// are less than two classes, if a class has no picture, has a folder in it or a name that is not
/// UTF-8 or has control characters, or if a link leads to nothing or in a circle.
PictureFolder list_pictures(const std::filesystem::path& folder);

/// Reads the header of every picture.
/// @throw PictureError of the first that is none
void check_headers(const PictureFolder& folder);

/// Reads all pictures, with so many threads beside this one, and leaves those out that are none or
/// damaged. Returns their number.
/// @throw std::runtime_error naming a class if none of its pictures is left.
int64_t leave_out_bad(PictureFolder& folder, int num_workers);

/// Two parts of a folder's pictures, each in the folder's order.
struct PictureSplit {
  std::vector<PictureFile> train = {};
  std::vector<PictureFile> test = {};
};

/// Puts a fraction of each class, rounded, into the test part, chosen by the seed; one picture at
/// least remains for the training. Python: `train_test_split(..., stratify=target)` of
/// scikit-learn, which draws others.
/// @throw std::runtime_error if the test part would have none.
PictureSplit split_pictures(const PictureFolder& folder, double test_fraction, uint64_t seed);

/// Reads a picture as (channels, height, width) of uint8: grey if that is one channel, and resized
/// whatever its form.
/// @throw PictureError
at::Tensor load_picture(const std::filesystem::path& file, at::IntArrayRef shape);

/// A source of items, of which one is a picture (C, H, W), uint8, and its class (), int64.
/// Python: `torchvision.datasets.ImageFolder`.
class PictureItems {
 public:
  PictureItems(std::vector<PictureFile> files, std::vector<int64_t> shape)
      : files_(std::move(files)), shape_(std::move(shape)) {}

  int64_t size() const { return static_cast<int64_t>(files_.size()); }  ///< number of pictures

  /// Reads one from its file.
  /// @throw PictureError
  sconce::data::Dataset get(int64_t index) const;

 private:
  std::vector<PictureFile> files_;
  std::vector<int64_t> shape_;
};

/// Sets mean and standard deviation of each channel, over at most 10,000 of the pictures, chosen by
/// the seed, which are read by so many threads beside this one.
/// @throw PictureError
void measure_channels(Images& images, const std::vector<PictureFile>& files, uint64_t seed,
                      int num_workers);

}  // namespace train
