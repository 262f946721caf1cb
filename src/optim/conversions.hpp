#pragma once

// For the sources of this folder and of state/.

#include <torch/optim/optimizer.h>

#include <string>

namespace sconce::optim {

/// Returns the options with the optimizer's type of options.
/// @throw c10::Error if they have another type.
template <class T, class Base>
T& options_as(Base& options, const std::string& name) {
  T* typed = dynamic_cast<T*>(&options);
  TORCH_CHECK(typed != nullptr, name, ": expected every group to have this optimizer's options");
  return *typed;
}

}  // namespace sconce::optim
