#pragma once

#include <filesystem>
#include <memory>

#include "capture/recorded_step.hpp"

namespace sconce::program::detail {

/// Returns whether LibTorch includes a runtime for compiled packages.
bool can_load_packages();

/// Loads a package that was compiled by Python's AOTInductor.
/// @throw c10::Error if LibTorch cannot load the package or does not include a runtime for
/// packages.
std::unique_ptr<sconce::detail::CompiledCode> load_package(const std::filesystem::path& path);

}  // namespace sconce::program::detail
