#pragma once

#include "sconce/fwd.hpp"

namespace sconce {

/// Returns the device with an index. A GPU without one becomes the current GPU. Defined in
/// devices.cpp.
/// @throw c10::Error, beginning with `who`, if `device` is a GPU that this process cannot use, or
/// is neither a CPU nor a CUDA device.
torch::Device resolve_device(torch::Device device, const char* who);

}  // namespace sconce
