#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "sconce/data/dataset.hpp"
#include "sconce/training/any_batches.hpp"
#include "task.hpp"

namespace train {

/// The training and test examples, in batches on the device, normalized as the task specifies. The
/// inputs are (N, ...), float32. The targets are classes (N,), int64, or numbers (N, 1), float32.
struct TrainingData {
  Task task;
  sconce::AnyBatches train;  ///< batches for this rank, in a new order in each epoch
  sconce::AnyBatches test;   ///< batches for this rank
  int64_t train_size = 0;    ///< number of examples on all ranks
  int64_t test_size = 0;     ///< number of examples on all ranks
  int64_t left_out = 0;      ///< number of images or rows skipped because of --skip-bad
};

/// Returns the folder with the digits. The folder is either installed next to the program that the
/// link `program` points to, or located in the source tree.
/// @throw c10::Error if neither folder exists, explaining how to specify another one.
std::filesystem::path find_digits(const std::filesystem::path& program,
                                  const std::filesystem::path& sources);

/// Returns whether `--data` is the name of a dataset, as opposed to a file or folder.
bool is_named(const std::string& data);

/// Returns whether `--data` is a table. Every file counts as a table.
bool is_table(const std::string& data);

/// Returns whether `--data` is a folder of image files, as opposed to IDX files.
bool is_picture_folder(const std::string& data);

/// Opens the images at `--data`. This can be "digits", which is included in sconce, or
/// "fashion-mnist", which is a Debian package. It can also be a folder with MNIST's four IDX files,
/// as found by `idx_file`, which are copied to the device, or a folder of image files, which are
/// read on demand. If `known` contains a mean and a deviation, they are used to normalize the
/// images.
/// @throw c10::Error if Fashion-MNIST is not installed, explaining how to install it. Also thrown,
/// with the path, if a folder contains both IDX files and folders of images, or if an IDX file is
/// missing or corrupted.
/// @throw std::runtime_error with the path of a folder or an image that is not as expected.
TrainingData open_images(const CommandLine& line, const sconce::distributed::ProcessGroup& group,
                         const Task& known = {});

/// Creates the batches for this rank. The tensors of all ranks are copied to the device once.
TrainingData in_memory(const CommandLine& line, const sconce::distributed::ProcessGroup& group,
                       const Task& task, const sconce::data::Dataset& train,
                       const sconce::data::Dataset& test);

/// The examples, split into two parts that preserve the original order.
struct ExampleSplit {
  std::vector<int64_t> train = {};
  std::vector<int64_t> test = {};
};

/// Moves a fraction of the examples in `indices`, rounded for each class, to the test part.
/// `targets` contains the class of each example as int64. Examples of the same class are
/// consecutive. The seed determines which examples are selected for testing. At least one example
/// of each class remains for training. Python: scikit-learn's
/// `train_test_split(..., stratify=target)`, which selects different examples.
/// @throw std::runtime_error if the test part would be empty.
ExampleSplit split_examples(const at::Tensor& targets, const std::vector<int64_t>& indices,
                            double test_fraction, uint64_t seed);

}  // namespace train
