#pragma once

#include <c10/core/Device.h>

#include <string>

namespace sconce::program::detail {

/// The target for which a package was compiled, as strings that can be compared.
struct PackageTarget {
  std::string torch;   // version and build
  std::string cpu;     // model, instructions, and LibTorch's instruction set
  std::string device;  // "cpu", or the GPU's name
  int threads = 1;
  std::string compiler = {};  // a hash of the Python files that run the compiler

  bool operator==(const PackageTarget&) const = default;
};

/// Returns the target for packages that this process runs on the device.
PackageTarget package_target(c10::Device device);

/// Returns a description of the first difference, such as "expected a package for 1 thread, found
/// one for 2", or an empty string.
std::string difference(const PackageTarget& found, const PackageTarget& expected);

}  // namespace sconce::program::detail
