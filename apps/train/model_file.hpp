#pragma once

#include <torch/nn/modules/container/sequential.h>

#include <filesystem>
#include <string>

#include "images.hpp"
#include "sconce/io/safetensors.hpp"

namespace train {

/// A trained network, with its input and its classes.
struct TrainedModel {
  std::string name = {};  ///< a name for `make_model`
  Images images = {};
  torch::nn::Sequential network{nullptr};
};

/// Returns the metadata of a weights file, from which `load_model` makes the network again.
sconce::io::Metadata model_metadata(const std::string& name, const Images& images);

/// Reads a weights file that a training wrote, and puts the network into evaluation mode.
/// @throw c10::Error naming the file if it cannot be read, was not written by a training, or has
/// metadata that is damaged or does not fit its tensors.
TrainedModel load_model(const std::filesystem::path& file);

}  // namespace train
