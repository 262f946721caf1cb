#pragma once

#include <filesystem>
#include <memory>

#include "capture/recorded_step.hpp"

namespace sconce::program::detail {

/// Returns whether LibTorch has a runtime for compiled packages.
bool can_load_packages();

/// Loads a package that Python's AOTInductor has compiled.
/// @throw c10::Error if LibTorch cannot load it, or has no runtime for packages.
std::unique_ptr<sconce::detail::CompiledCode> load_package(const std::filesystem::path& path);

}  // namespace sconce::program::detail
