#pragma once

#include <cstdlib>
#include <string_view>

#include "catch.hpp"
#include "sconce/devices.hpp"

namespace sconce::test {

/// Skips the test on a machine without a GPU, or fails the test if SCONCE_REQUIRE_GPU=1.
inline void require_gpu() {
  if (num_gpus() > 0) return;
  const char* required = std::getenv("SCONCE_REQUIRE_GPU");
  if (required != nullptr && std::string_view(required) == "1") {
    FAIL("SCONCE_REQUIRE_GPU=1, and this process sees no GPU");
  }
  SKIP("needs a GPU, and this process sees none");
}

/// Returns whether sconce-simgpu started this process. Simulated GPUs run the CPU kernels.
inline bool on_simulated_gpus() {
  return std::getenv("SCONCE_SIMGPU_GPUS") != nullptr;
}

}  // namespace sconce::test
