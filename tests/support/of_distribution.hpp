#pragma once

#include <string_view>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "catch.hpp"
#include "support/gloo_types.hpp"

/// Skips tests for features that are missing from a distribution's LibTorch package, such as the
/// one in Debian.
namespace sconce::test {

/// Skips the rest of the test if Gloo cannot reduce 16-bit floating-point tensors.
inline void require_gloo_of_16_bits() {
  if (!gloo_reduces_16_bits()) SKIP("the Gloo of this LibTorch does not reduce 16-bit floats");
}

/// Skips the test if LibTorch was built without libuv, because torchrun does not start without
/// libuv.
inline void require_torchrun() {
  c10d::TCPStoreOptions options;
  options.isServer = true;
  options.waitWorkers = false;
  try {
    const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  } catch (const c10::Error& error) {
    if (std::string_view(error.what()).find("without libuv") == std::string_view::npos) throw;
    SKIP("this LibTorch was built without libuv, and its torchrun does not start");
  }
}

}  // namespace sconce::test
