#pragma once

#include <ATen/core/ivalue.h>

#include "sconce/fwd.hpp"

namespace sconce::optim {

/// The functions that write and read the state of an optimizer.
struct OptimizerState {
  c10::IValue (*state_dict)(const torch::optim::Optimizer&);
  /// Returns the "param_groups" of the state dict.
  c10::IValue (*options)(const torch::optim::Optimizer&);
  /// Throws c10::Error if the state does not fit; the optimizer has not changed then.
  void (*load_state_dict)(torch::optim::Optimizer&, const c10::IValue&);
};

/// Returns the functions for an optimizer of sconce, or one of LibTorch's classes, whose state gets
/// the form of Python's `state_dict()`.
/// @throw c10::Error naming the class, if it is another one.
OptimizerState optimizer_state(const torch::optim::Optimizer& optimizer);

}  // namespace sconce::optim
