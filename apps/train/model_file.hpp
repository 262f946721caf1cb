#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "images.hpp"
#include "models.hpp"
#include "sconce/io/safetensors.hpp"

namespace train {

/// A trained network, with its input and its classes.
struct TrainedModel {
  std::string name = {};  ///< a name for `make_model`
  Images images = {};
  Classifier network{nullptr};
};

/// Returns the metadata of a weights file, from which `load_model` makes the network again.
sconce::io::Metadata model_metadata(const std::string& name, const Images& images);

/// Reads a weights file that a training wrote, and puts the network into evaluation mode.
/// @throw c10::Error naming the file if it cannot be read, was not written by a training, or has
/// metadata that is damaged or does not fit its tensors.
TrainedModel load_model(const std::filesystem::path& file);

/// Weights that a training begins with.
struct Pretrained {
  std::filesystem::path file = {};
  sconce::StateDict state = sconce::StateDict();
  /// Mean and deviation of the images that they were trained on; empty if they are not known.
  Images images = {};
};

/// Reads the file of `--weights`: a safetensors file if it ends in .safetensors, else a state dict
/// that Python's `torch.save` wrote. The images' mean and deviation are those that a training wrote
/// with the weights, else ImageNet's for a network of `sconce::vision`.
/// @throw c10::Error naming the file if it cannot be read.
Pretrained load_pretrained(const std::filesystem::path& file, const std::string& model_name);

/// Copies the weights into a network. A last layer of another number of classes stays as it was
/// made; returns the number of classes that the weights have then.
/// @throw c10::Error naming the file and the tensors that do not fit. The network is as it was.
std::optional<int64_t> load_weights(Classifier& network, const Pretrained& weights);

}  // namespace train
