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

/// Some pictures of a folder.
using Pictures = sconce::data::Subset<ImageFolder>;

/// Returns one of MNIST's IDX files, such as "images" of the part "train", under the first of these
/// names that exists, otherwise under the last one:
/// - train-images.idx3-ubyte.gz and train-images.idx3-ubyte, as some sites distribute them;
/// - train-images-idx3-ubyte.gz and train-images-idx3-ubyte.
std::filesystem::path idx_file(const std::filesystem::path& folder, const std::string& part,
                               const std::string& kind);

/// Returns whether a folder has any of MNIST's four IDX files, as `idx_file` finds them.
bool has_idx_files(const std::filesystem::path& folder);

/// Returns whether a subfolder of a folder has a picture, by its name. Names of subfolders that
/// begin with a dot do not count.
bool has_picture_folders(const std::filesystem::path& folder);

/// How pictures become uint8 of `shape`, (channels, height, width): gray if that is one channel,
/// and resized without keeping their aspect ratio.
sconce::vision::ImageFolderOptions reading_as(const std::vector<int64_t>& shape,
                                              const ImageLimits& limits = {});

/// Opens a folder of pictures of two classes or more.
/// @throw c10::Error naming the folder or what in it is not as expected.
std::shared_ptr<const ImageFolder> open_folder(const std::filesystem::path& folder,
                                               const std::vector<int64_t>& shape,
                                               const ImageLimits& limits = {});

/// Reads the header of every picture. Returns the index of each.
/// @throw c10::Error for the first file that is not a picture within the limits.
std::vector<int64_t> check_headers(const ImageFolder& folder, const ImageLimits& limits = {});

/// Reads all pictures with `num_workers` further threads. Returns the indices without files that
/// are damaged, beyond the limits, or not pictures.
/// @throw std::runtime_error naming a class of which no picture is left.
std::vector<int64_t> leave_out_bad(const ImageFolder& folder, int num_workers,
                                   const ImageLimits& limits = {});

/// Sets the mean and the standard deviation of each channel. Reads at most 10,000 of the pictures,
/// which the seed chooses, with `num_workers` further threads.
/// @throw c10::Error
void measure_channels(Task& task, const Pictures& pictures, uint64_t seed, int num_workers);

}  // namespace train
