#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "models.hpp"
#include "sconce/io/safetensors.hpp"
#include "task.hpp"

namespace train {

/// Returns whether a file contains a recorded program, even one that sconce-train did not write.
/// Returns false if the file cannot be read.
bool is_program(const std::filesystem::path& file);

/// A trained network, with its task.
struct TrainedModel {
  std::string name = {};  ///< a valid name for `make_model`
  Task task = {};
  Classifier network{nullptr};
};

/// Returns the metadata of a weights file, from which `load_model` reconstructs the network.
sconce::io::Metadata model_metadata(const std::string& name, const Task& task);

/// Returns the task of a table, without means and deviations.
Task task_of_table(const std::vector<sconce::io::CsvColumn>& columns, const std::string& target);

/// Returns a line for each column, such as "column roof", followed by one for each of its
/// categories, such as "category slate".
std::vector<std::string> column_lines(const std::vector<sconce::io::CsvColumn>& columns);

/// Parses the task from metadata that `model_metadata` returned. Error messages start with the
/// file.
/// @throw c10::Error if the metadata is damaged or was not written by sconce-train.
Task task_of(const sconce::io::Metadata& texts, const std::filesystem::path& file);

/// Reads the task from the metadata of a weights file. Throws the same errors as `load_model`.
Task load_task(const std::filesystem::path& file);

/// Reads a weights file that sconce-train wrote, and puts the network into evaluation mode. No
/// memory is allocated for a network that does not match the file's tensors.
/// @throw c10::Error naming the file if it cannot be read, was not written by sconce-train, or
/// contains metadata that is damaged or does not match its tensors.
TrainedModel load_model(const std::filesystem::path& file);

/// Initial weights of a training run.
struct Pretrained {
  std::filesystem::path file = {};
  sconce::StateDict state = sconce::StateDict();
  /// Mean and deviation of the images that the weights were trained on; empty if unknown.
  Task task = {};
};

/// Reads the `--weights` file. A file that starts like a zip archive, whatever its name, is parsed
/// as a state dict from Python's `torch.save`, any other file as safetensors. The mean and
/// deviation of the images are the ones that sconce-train wrote with the weights, or otherwise
/// ImageNet's if this is a network of `sconce::vision`.
/// @throw c10::Error naming the file if it cannot be read, contains the weights of a table, or is a
/// program.
Pretrained load_pretrained(const std::filesystem::path& file, const std::string& model_name);

/// Copies the weights into a network. If the number of classes in the last layer differs, the
/// network keeps its own last layer, and the function returns the number of classes in the weights.
/// @throw c10::Error naming the file and the tensors that do not fit. The network is unchanged.
std::optional<int64_t> load_weights(Classifier& network, const Pretrained& weights);

}  // namespace train
