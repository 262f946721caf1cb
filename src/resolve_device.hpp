#pragma once

#include "sconce/fwd.hpp"

namespace sconce {

/// Returns the device with an explicit index. A GPU without an index becomes the current GPU. This
/// function is defined in devices.cpp.
/// @throw c10::Error with the prefix `caller` if `device` is a GPU that this process cannot use, or
/// if it is neither a CPU nor a CUDA device.
torch::Device resolve_device(torch::Device device, const char* caller);

}  // namespace sconce
