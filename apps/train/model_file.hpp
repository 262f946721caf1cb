#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "models.hpp"
#include "sconce/io/safetensors.hpp"
#include "task.hpp"

namespace train {

/// Returns whether a file contains a recorded program, including one not written by sconce-train.
/// Returns false if the file cannot be read.
bool is_program(const std::filesystem::path& file);

/// A trained network together with its task.
struct TrainedModel {
  std::string name = {};  ///< a valid model name for `make_model`
  Task task = {};
  Classifier network{nullptr};
};

/// Returns the metadata for a weights file, which `load_model` uses to reconstruct the network.
sconce::io::Metadata model_metadata(const std::string& name, const Task& task);

/// Returns the task for a table, without means and deviations.
Task task_of_table(const std::vector<sconce::io::CsvColumn>& columns, const std::string& target);

/// Returns a line for each column, such as "column roof", followed by a line for each of its
/// categories, such as "category slate".
std::vector<std::string> column_lines(const std::vector<sconce::io::CsvColumn>& columns);

/// Parses the task from metadata returned by `model_metadata`. Error messages start with the file's
/// path.
/// @throw c10::Error if the metadata is corrupted or was not written by sconce-train.
Task task_of(const sconce::io::Metadata& texts, const std::filesystem::path& file);

/// Reads the task from the metadata of a weights file. Throws the same exceptions as `load_model`.
Task load_task(const std::filesystem::path& file);

/// Reads a weights file written by sconce-train and puts the network into evaluation mode. Does not
/// allocate memory for a network that does not match the file's tensors.
/// @throw c10::Error with the file's path if the file cannot be read, was not written by
/// sconce-train, or contains metadata that is corrupted or does not match its tensors.
TrainedModel load_model(const std::filesystem::path& file);

/// The initial weights for a training run.
struct Pretrained {
  std::filesystem::path file = {};
  sconce::StateDict state = sconce::StateDict();
  /// The mean and deviation of the images that the weights were trained on. Empty if unknown.
  Task task = {};
};

/// Reads the `--weights` file. A file that starts like a zip archive, regardless of its name, is
/// parsed as a state dict saved with Python's `torch.save`. Any other file is parsed as
/// safetensors. The mean and deviation of the images are the values that sconce-train saved with
/// the weights. If there are none, and the network is from `sconce::vision`, ImageNet's values are
/// used.
/// @throw c10::Error with the file's path if the file cannot be read, contains weights trained on a
/// table, or is a program.
Pretrained load_pretrained(const std::filesystem::path& file, const std::string& model_name);

/// Copies the weights into a network. If the number of classes in the last layer differs, the
/// network keeps its own last layer, and the function returns the number of classes in the weights.
/// @throw c10::Error with the file's path and the tensors that do not fit. In that case, the
/// network is not modified.
std::optional<int64_t> load_weights(Classifier& network, const Pretrained& weights);

}  // namespace train
