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

/// The training and test examples, in batches on the device, normalized as the task specifies:
/// inputs (N, ...), float32, and classes (N,), int64, or numbers (N, 1), float32.
struct TrainingData {
  Task task;
  sconce::AnyBatches train;  ///< for this rank, in a new order each epoch
  sconce::AnyBatches test;   ///< for this rank
  int64_t train_size = 0;    ///< over all ranks
  int64_t test_size = 0;     ///< over all ranks
  int64_t left_out = 0;      ///< number of pictures or rows that --skip-bad skipped
};

/// Returns the folder with the digits. It is either installed next to the program that the link
/// `program` points to, or in the source tree.
/// @throw c10::Error if neither folder exists, explaining how to name another one.
std::filesystem::path find_digits(const std::filesystem::path& program,
                                  const std::filesystem::path& sources);

/// Returns whether `--data` is the name of a dataset rather than a file or folder.
bool is_named(const std::string& data);

/// Returns whether `--data` is a table, which means a file.
bool is_table(const std::string& data);

/// Returns whether `--data` is a folder of pictures rather than IDX files.
bool is_picture_folder(const std::string& data);

/// Opens the images at `--data`: "digits", which come with sconce; "fashion-mnist", Debian's
/// package; a folder with MNIST's four IDX files, as found by `idx_file`, which are copied to the
/// device; or a folder of pictures, which are read on demand. If `known` contains a mean and a
/// deviation, they are used to normalize the images.
/// @throw c10::Error if Fashion-MNIST is not installed, explaining how to install it; if a folder
/// contains both IDX files and folders of pictures, naming it; or if an IDX file is missing or
/// damaged, naming it.
/// @throw std::runtime_error naming a folder or a picture that is not as expected.
TrainingData open_images(const CommandLine& line, const sconce::distributed::ProcessGroup& group,
                         const Task& known = {});

/// Creates the batches of this rank. The tensors of all ranks are copied to the device once.
TrainingData in_memory(const CommandLine& line, const sconce::distributed::ProcessGroup& group,
                       const Task& task, const sconce::data::Dataset& train,
                       const sconce::data::Dataset& test);

/// The examples in two parts, each in the original order.
struct ExampleSplit {
  std::vector<int64_t> train = {};
  std::vector<int64_t> test = {};
};

/// Moves a fraction of each class, rounded, of the examples `indices` to the test part. `targets`
/// contains the class of each example, int64; examples of the same class are consecutive. The seed
/// selects the test examples. At least one example of each class remains for training. Python:
/// scikit-learn's `train_test_split(..., stratify=target)`, which selects different examples.
/// @throw std::runtime_error if the test part would be empty.
ExampleSplit split_examples(const at::Tensor& targets, const std::vector<int64_t>& indices,
                            double test_fraction, uint64_t seed);

}  // namespace train
