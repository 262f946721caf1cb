#pragma once

// This is an internal header of src/optim and src/state.

#include <torch/optim/optimizer.h>

#include <string>

namespace sconce::optim {

/// Returns the options, cast to the option type of the optimizer.
/// @throw c10::Error if the options have a different type.
template <class T, class Base>
T& options_as(Base& options, const std::string& name) {
  T* typed = dynamic_cast<T*>(&options);
  TORCH_CHECK(typed != nullptr, name, ": expected every group to have this optimizer's options");
  return *typed;
}

}  // namespace sconce::optim
