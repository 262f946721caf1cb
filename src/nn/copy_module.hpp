#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "nn/keep_generator.hpp"

namespace sconce::nn {

/// Copies which parameters require a gradient. LibTorch's `clone` lets each one require it,
/// Python's `deepcopy` does not.
inline void copy_requires_grad(const torch::nn::Module& from, torch::nn::Module& to) {
  const auto given = from.parameters();
  const auto copies = to.parameters();
  for (size_t i = 0; i < given.size(); ++i) copies[i].set_requires_grad(given[i].requires_grad());
}

/// Returns a deep copy of the module, with the same modes, without drawing random numbers. Python:
/// `copy.deepcopy`.
/// @throw c10::Error, whose text begins with `who`, if the module cannot be cloned.
inline std::shared_ptr<torch::nn::Module> copy_module(const torch::nn::Module& module,
                                                      const char* who) {
  const KeepGenerator kept;
  std::shared_ptr<torch::nn::Module> copy;
  try {
    copy = module.clone();
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, who, ": expected a module that can be cloned, got one that cannot: ",
                error.what_without_backtrace());
  }
  copy_requires_grad(module, *copy);
  return copy;
}

}  // namespace sconce::nn
