#pragma once

#include <c10/core/Device.h>

#include <string>

namespace sconce::program::detail {

/// What a compiled package was made for, as texts to compare.
struct PackageTarget {
  std::string torch;   // the version, and what identifies the build
  std::string cpu;     // the model, its instructions, and those that LibTorch uses
  std::string device;  // "cpu", or the GPU's name
  int threads = 1;
  std::string compiler = {};  // a hash of the Python files that compile

  bool operator==(const PackageTarget&) const = default;
};

/// Returns the target of packages that run in this process on the device.
PackageTarget package_target(c10::Device device);

/// Returns the first difference, such as "expected a package for 1 thread, found one for 2", or an
/// empty text.
std::string difference(const PackageTarget& found, const PackageTarget& expected);

}  // namespace sconce::program::detail
