#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sconce/report/environment.hpp"

namespace sconce {

/// Returns the value of a variable of the facts, or none if it was not set.
std::optional<std::string> variable(const Environment& facts, const std::string& name);

/// Returns the places in `driver.gpus` of those that CUDA_VISIBLE_DEVICES leaves, in its order:
/// numbers, or beginnings of UUIDs, up to the first that fits no GPU.
std::vector<size_t> visible_gpus(const Environment& facts);

/// Gives each GPU its index in CUDA's order: by the bus ids that CUDA tells, or else by the
/// variables. GPUs that are hidden, or whose order only CUDA knows, get none.
void number_gpus(Environment& facts);

}  // namespace sconce
