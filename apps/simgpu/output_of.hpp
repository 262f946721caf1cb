#pragma once

#include <string>
#include <vector>

namespace simgpu {

/// Runs a program with additional environment variables ("NAME=value") and returns its standard
/// output, or an empty string if the program fails.
std::string output_of(const std::vector<std::string>& command,
                      const std::vector<std::string>& variables = {});

}  // namespace simgpu
