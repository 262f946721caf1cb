#pragma once

#include "sconce/report/environment.hpp"

namespace sconce {

/// Returns the information that NVML reports about the driver and its GPUs. Loads NVML from
/// `library` and unloads it afterwards. The indices of the GPUs are not set yet.
DriverInfo ask_nvml(const char* library = "libnvidia-ml.so.1");

}  // namespace sconce
