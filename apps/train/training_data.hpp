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

/// The examples for training and test, in batches on the device, normalized as the task says:
/// inputs (N, ...), float32, and classes (N,), int64, or numbers (N, 1), float32.
struct TrainingData {
  Task task;
  sconce::AnyBatches train;  ///< of this rank, in another order in each epoch
  sconce::AnyBatches test;   ///< of this rank
  int64_t train_size = 0;    ///< of all ranks
  int64_t test_size = 0;     ///< of all ranks
  int64_t left_out = 0;      ///< number of pictures or rows that --skip-bad left out
};

/// Returns the folder of the digits, which is installed next to the program that `program` links
/// to, or lies among the sources.
/// @throw c10::Error if neither is a folder, saying how to name another one.
std::filesystem::path find_digits(const std::filesystem::path& program,
                                  const std::filesystem::path& sources);

/// Returns whether `--data` is the name of a dataset and not of a file or folder.
bool is_named(const std::string& data);

/// Returns whether `--data` names a table, which is a file and no folder.
bool is_table(const std::string& data);

/// Returns whether `--data` names a folder of pictures and not one of IDX files.
bool is_picture_folder(const std::string& data);

/// Opens what `--data` names: "digits", which come with sconce; "fashion-mnist", Debian's package;
/// a folder with MNIST's four IDX files, as `idx_file` finds them, which are copied to the device;
/// or a folder of pictures, which are read when they are needed. If `known` has a mean and a
/// deviation, the images are normalized with these.
/// @throw c10::Error if Fashion-MNIST is not installed, saying how to get it; naming a folder with
/// both IDX files and folders of pictures; or naming an IDX file that is missing or damaged.
/// @throw std::runtime_error naming a folder or a picture that is not as expected.
TrainingData open_images(const CommandLine& line, const sconce::distributed::ProcessGroup& group,
                         const Task& known = {});

/// Makes the batches of this rank. The tensors of all ranks are copied to the device once.
TrainingData in_memory(const CommandLine& line, const sconce::distributed::ProcessGroup& group,
                       const Task& task, const sconce::data::Dataset& train,
                       const sconce::data::Dataset& test);

/// Two parts of the examples, each in the order in which they were given.
struct ExampleSplit {
  std::vector<int64_t> train = {};
  std::vector<int64_t> test = {};
};

/// Moves a fraction of each class, rounded, of the examples `indices` to the test part. `targets`
/// has the class of each example, int64; those of one class are in a row. The seed chooses. At
/// least one example of each class remains for training. Python: `train_test_split(...,
/// stratify=target)` of scikit-learn, which draws others.
/// @throw std::runtime_error if the test part would be empty.
ExampleSplit split_examples(const at::Tensor& targets, const std::vector<int64_t>& indices,
                            double test_fraction, uint64_t seed);

}  // namespace train
