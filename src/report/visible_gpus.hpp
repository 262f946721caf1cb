#pragma once

#include <vector>

#include "sconce/report/environment.hpp"

namespace sconce {

/// Returns the positions in `driver.gpus` of the GPUs that CUDA_VISIBLE_DEVICES lists, in its
/// order. An entry is a number or the beginning of a UUID; the first one that fits no GPU ends the
/// list. All GPUs are visible if the variable is not set.
std::vector<size_t> visible_gpus(const Environment& facts);

/// Sets the index of each GPU in CUDA's order. It is known from the bus ids that CUDA reports, or
/// else from the variables. GPUs that are hidden, or whose order only CUDA knows, get no index.
void number_gpus(Environment& facts);

}  // namespace sconce
