#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "models.hpp"
#include "sconce/io/safetensors.hpp"
#include "task.hpp"

namespace train {

/// Returns whether a file contains a recorded program, whoever wrote it. A file that cannot be read
/// contains none.
bool is_program(const std::filesystem::path& file);

/// A trained network, with its task.
struct TrainedModel {
  std::string name = {};  ///< a name for `make_model`
  Task task = {};
  Classifier network{nullptr};
};

/// Returns the metadata of a weights file, from which `load_model` makes the network again.
sconce::io::Metadata model_metadata(const std::string& name, const Task& task);

/// Returns the task of a table, without mean and deviation.
Task task_of_table(const std::vector<sconce::io::CsvColumn>& columns, const std::string& target);

/// Returns a line for each column, such as "column roof", and below it one for each of its
/// categories, such as "category slate".
std::vector<std::string> column_lines(const std::vector<sconce::io::CsvColumn>& columns);

/// Reads the task from texts that `model_metadata` returned. Errors name the file.
/// @throw c10::Error if the texts are not those of a training, or damaged.
Task task_of(const sconce::io::Metadata& texts, const std::filesystem::path& file);

/// Reads the task from a file with the metadata of weights. Throws as `load_model`.
Task load_task(const std::filesystem::path& file);

/// Reads a weights file that a training wrote, and puts the network into evaluation mode. No memory
/// is allocated for a network that the file's tensors do not fit.
/// @throw c10::Error naming the file if it cannot be read, was not written by a training, or has
/// metadata that is damaged or does not fit its tensors.
TrainedModel load_model(const std::filesystem::path& file);

/// Weights that a training begins with.
struct Pretrained {
  std::filesystem::path file = {};
  sconce::StateDict state = sconce::StateDict();
  /// Mean and deviation of the images that they were trained on; empty if they are not known.
  Task task = {};
};

/// Reads the file of `--weights`: a state dict that Python's `torch.save` wrote if it begins like a
/// zip archive, whatever its name, otherwise a safetensors file. The images' mean and deviation are
/// those that a training wrote with the weights, else ImageNet's for a network of `sconce::vision`.
/// @throw c10::Error naming the file if it cannot be read, has the weights of a table, or is a
/// program.
Pretrained load_pretrained(const std::filesystem::path& file, const std::string& model_name);

/// Copies the weights into a network. A last layer of another number of classes stays as it was
/// made; returns the number of classes that the weights have then.
/// @throw c10::Error naming the file and the tensors that do not fit. The network is as it was.
std::optional<int64_t> load_weights(Classifier& network, const Pretrained& weights);

}  // namespace train
