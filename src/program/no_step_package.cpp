// Replaces step_package.cpp in builds in which LibTorch does not include the runtime for compiled
// packages.
#include <c10/util/Exception.h>

#include "program/step_package.hpp"

namespace sconce::program::detail {

bool can_load_packages() {
  return false;
}

std::unique_ptr<sconce::detail::CompiledCode> load_package(const std::filesystem::path& path) {
  TORCH_CHECK(false, path.string(), ": this LibTorch has no runtime for compiled packages");
}

}  // namespace sconce::program::detail
