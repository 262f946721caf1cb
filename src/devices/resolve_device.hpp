#pragma once

#include "sconce/fwd.hpp"

namespace sconce {

/// Returns the device with its index: of a GPU named without one, the current GPU's. In
/// devices.cpp.
/// @throw c10::Error, whose message begins with `who`, if `device` is a GPU that this process
/// cannot use, or of a type that is neither CPU nor CUDA.
torch::Device resolve_device(torch::Device device, const char* who);

}  // namespace sconce
