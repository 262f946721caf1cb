#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "nn/keep_generator.hpp"

namespace sconce::nn {

/// Copies the requires_grad flags of the parameters. Unlike Python's `deepcopy`, LibTorch's `clone`
/// sets the flag on every copy.
inline void copy_requires_grad(const torch::nn::Module& from, torch::nn::Module& to) {
  const auto given = from.parameters();
  const auto copies = to.parameters();
  for (size_t i = 0; i < given.size(); ++i) copies[i].set_requires_grad(given[i].requires_grad());
}

/// Returns a deep copy of the module with the same training modes, without drawing random numbers.
/// Python: `copy.deepcopy`.
/// @throw c10::Error with the prefix `caller` if the module cannot be cloned.
inline std::shared_ptr<torch::nn::Module> copy_module(const torch::nn::Module& module,
                                                      const char* caller) {
  const KeepGenerator kept;
  std::shared_ptr<torch::nn::Module> copy;
  try {
    copy = module.clone();
  } catch (const c10::Error& error) {
    TORCH_CHECK(false, caller, ": expected a module that can be cloned, but cloning failed: ",
                error.what_without_backtrace());
  }
  copy_requires_grad(module, *copy);
  return copy;
}

}  // namespace sconce::nn
