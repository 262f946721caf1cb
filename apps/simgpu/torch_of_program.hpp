#pragma once

#include <filesystem>

namespace simgpu {

/// Checks that a program uses the LibTorch that sconce-simgpu was built with, which means the CUDA
/// build of the same version. `executable` is the file that runs the program. A program with a
/// Python interpreter's name uses the LibTorch in the torch package that it would import.
/// @throw UsageError if the program uses a different LibTorch or no LibTorch.
void check_torch(const std::filesystem::path& program, const std::filesystem::path& executable);

}  // namespace simgpu
