#pragma once

#include <ATen/core/ivalue.h>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// The functions that write and read optimizer state.
struct OptimizerState {
  c10::IValue (*state_dict)(const torch::optim::Optimizer&);
  /// Returns the "param_groups" of the state dict.
  c10::IValue (*options)(const torch::optim::Optimizer&);
  /// Loads a state. Throws c10::Error and leaves the optimizer unchanged if the state is
  /// incompatible.
  void (*load_state_dict)(torch::optim::Optimizer&, const c10::IValue&);
};

/// Returns the functions for an optimizer of a sconce or LibTorch class. The state has the same
/// form as Python's `state_dict()`.
/// @throw c10::Error with the name of the class for any other class.
OptimizerState optimizer_state(const torch::optim::Optimizer& optimizer);

}  // namespace sconce::optim
