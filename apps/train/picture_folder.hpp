#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sconce/data/subset.hpp"
#include "sconce/vision/image_folder.hpp"
#include "task.hpp"

namespace train {

using sconce::vision::ImageFolder;
using sconce::vision::ImageLimits;

/// A subset of the images in a folder.
using Pictures = sconce::data::Subset<ImageFolder>;

/// Returns the path of one of MNIST's IDX files, such as "images" in the "train" part. The file
/// name is the first of these names that exists, or the last one if none exist:
/// - train-images.idx3-ubyte.gz and train-images.idx3-ubyte, as some sites distribute them;
/// - train-images-idx3-ubyte.gz and train-images-idx3-ubyte.
std::filesystem::path idx_file(const std::filesystem::path& folder, const std::string& part,
                               const std::string& kind);

/// Returns whether a folder contains any of MNIST's four IDX files, as found by `idx_file`.
bool has_idx_files(const std::filesystem::path& folder);

/// Returns whether a subfolder contains a file that has the name of an image. Subfolders whose
/// names start with a dot do not count.
bool has_picture_folders(const std::filesystem::path& folder);

/// Returns options that convert images to uint8 tensors with the given `shape`, (channels, height,
/// width). Images are converted to grayscale if there is one channel, and resized without
/// preserving their aspect ratio.
sconce::vision::ImageFolderOptions folder_options(const std::vector<int64_t>& shape,
                                                  const ImageLimits& limits = {});

/// Opens a folder of images with at least two classes.
/// @throw c10::Error with the path of the folder, or of the file or subfolder that is not as
/// expected.
std::shared_ptr<const ImageFolder> open_folder(const std::filesystem::path& folder,
                                               const std::vector<int64_t>& shape,
                                               const ImageLimits& limits = {});

/// Reads the header of every image and returns the indices of all images.
/// @throw c10::Error for the first file that is not an image within the limits.
std::vector<int64_t> check_headers(const ImageFolder& folder, const ImageLimits& limits = {});

/// Reads all images with `num_workers` additional threads. Returns the indices of all files except
/// files that are corrupted, exceed the limits, or are not images.
/// @throw std::runtime_error with the name of a class that has no images left.
std::vector<int64_t> leave_out_bad(const ImageFolder& folder, int num_workers,
                                   const ImageLimits& limits = {});

/// Sets the mean and the standard deviation of each channel. Reads at most 10,000 images, which are
/// selected based on the seed, with `num_workers` additional threads.
/// @throw c10::Error
void measure_channels(Task& task, const Pictures& pictures, uint64_t seed, int num_workers);

}  // namespace train
