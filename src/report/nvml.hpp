#pragma once

#include "sconce/report/environment.hpp"

namespace sconce {

/// Returns what the driver says by NVML, which is loaded for this call from `library`. The GPUs
/// have no index yet.
DriverFacts ask_nvml(const char* library = "libnvidia-ml.so.1");

}  // namespace sconce
