#pragma once

// For the sources of this folder.

#include <memory>

#include "sconce/optim/optimizer.hpp"

namespace sconce::optim {

template <class State, class Make>
State& Optimizer::fitting_state(size_t group, size_t index, torch::Tensor State::* like,
                                const Make& make) {
  const auto& parameter = param_groups_[group].params()[index];
  auto* const key = parameter.unsafeGetTensorImpl();
  const auto found = state_.find(key);
  const auto* old =
      found == state_.end() ? nullptr : static_cast<const State*>(found->second.get());
  const bool fits = state_fits(group, index, old ? old->*like : torch::Tensor());
  if (!old) {
    state_[key] = make(parameter);
  } else if (!fits) {
    found->second = make_state(state_tensors(*old), parameter);
  }
  auto& state = static_cast<State&>(*state_[key]);
  state.owner = StateOwner(parameter);  // also for a state that was loaded
  return state;
}

}  // namespace sconce::optim
