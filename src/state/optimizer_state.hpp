#pragma once

#include <ATen/core/ivalue.h>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// The functions that write and read the state of an optimizer.
struct OptimizerState {
  c10::IValue (*state_dict)(const torch::optim::Optimizer&);
  /// Returns the "param_groups" of the state dict.
  c10::IValue (*options)(const torch::optim::Optimizer&);
  /// Throws c10::Error if the state does not fit. In that case, the optimizer is unchanged.
  void (*load_state_dict)(torch::optim::Optimizer&, const c10::IValue&);
};

/// Returns the functions for an optimizer from sconce or from one of LibTorch's classes. Its state
/// has the form of Python's `state_dict()`.
/// @throw c10::Error with the name of the class for any other class.
OptimizerState optimizer_state(const torch::optim::Optimizer& optimizer);

}  // namespace sconce::optim
