#pragma once

#include <array>

#include "sconce/optim/cyclic_lr.hpp"

namespace sconce::optim::lr_scheduler {

/// Looked up by StateVisitor: Python's names, in the order of the enum.
constexpr std::array<const char*, 2> names(AnnealStrategy) {
  return {"cos", "linear"};
}

}  // namespace sconce::optim::lr_scheduler
