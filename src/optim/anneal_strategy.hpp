#pragma once

#include <array>

#include "sconce/optim/cyclic_lr.hpp"

namespace sconce::optim::lr_scheduler {

/// Returns Python's names, in enum order. StateVisitor looks up this function.
constexpr std::array<const char*, 2> names(AnnealStrategy) {
  return {"cos", "linear"};
}

}  // namespace sconce::optim::lr_scheduler
