#pragma once

#include "sconce/report/environment.hpp"

namespace sconce {

/// Returns the facts that NVML reports about the driver and its GPUs. NVML is loaded from `library`
/// and unloaded again. The GPUs have no index yet.
DriverInfo ask_nvml(const char* library = "libnvidia-ml.so.1");

}  // namespace sconce
