#pragma once

#include <array>

#include "sconce/optim/cyclic_lr.hpp"

namespace sconce::optim::lr_scheduler {

/// What StateVisitor looks up: Python's words, in the order of the enum.
constexpr std::array<const char*, 2> names(AnnealStrategy) {
  return {"cos", "linear"};
}

}  // namespace sconce::optim::lr_scheduler
