#pragma once

#include <filesystem>

namespace simgpu {

/// Checks that a program uses the LibTorch that sconce-simgpu was built with: its CUDA build, in
/// the same version. `executable` is the file that runs it. Python, by its name, has the LibTorch
/// of the torch that it would import.
/// @throw UsageError if it has another LibTorch, or none.
void check_torch(const std::filesystem::path& program, const std::filesystem::path& executable);

}  // namespace simgpu
