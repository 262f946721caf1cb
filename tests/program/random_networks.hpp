#pragma once

// Defines random networks that are built from LibTorch's layers.

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "program/networks.hpp"
#include "support/draw.hpp"

namespace sconce::test {

/// A layer for tensors of shape (rows, channels, ...).
using Layer = std::function<torch::Tensor(const torch::Tensor&)>;

/// Creates a layer for tensors like `x`, and registers its modules.
struct LayerMaker {
  template <class Module>
  Module keep(Module module) {
    owner.register_module("layer" + std::to_string(owner.children().size()), module);
    return module;
  }

  /// Returns the number of dimensions after the channels.
  int64_t spatial() const { return x.dim() - 2; }

  torch::nn::Module& owner;
  Draw& draw;
  torch::Tensor x;  // an example
};

/// A kind of layer. `make` returns nothing if the layer does not support the tensors.
struct LayerKind {
  const char* name;
  Layer (*make)(LayerMaker&);
};

/// Returns all kinds.
const std::vector<LayerKind>& layer_kinds();

/// A random network in evaluation mode that depends only on the seed.
struct RandomNetwork {
  explicit RandomNetwork(uint32_t seed);

  Network network;
  std::set<std::string> kinds = {};
};

}  // namespace sconce::test
