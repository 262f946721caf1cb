#pragma once

#include <vector>

#include "sconce/report/environment.hpp"

namespace sconce {

/// Returns the positions in `driver.gpus` of the GPUs that CUDA_VISIBLE_DEVICES lists, in the same
/// order. An entry is a number or the beginning of a UUID. The list ends at the first entry that
/// does not match a GPU. If the variable is not set, all GPUs are visible.
std::vector<size_t> visible_gpus(const Environment& facts);

/// Sets the index of each GPU in CUDA order. The order is derived from the bus IDs that CUDA
/// reports or, if there are none, from the environment variables. A GPU does not get an index if it
/// is hidden, or if only CUDA can determine the order.
void number_gpus(Environment& facts);

}  // namespace sconce
