#pragma once

#include <string_view>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "catch.hpp"
#include "support/gloo_types.hpp"

/// Skips tests of features that the LibTorch of a distribution, such as Debian's LibTorch, does not
/// have.
namespace sconce::test {

/// Skips the rest of the test if Gloo does not reduce tensors of 16-bit floats.
inline void require_gloo_of_16_bits() {
  if (!gloo_reduces_16_bits()) SKIP("the Gloo of this LibTorch does not reduce 16-bit floats");
}

/// Skips the test if LibTorch was built without libuv, because torchrun does not start without it.
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
