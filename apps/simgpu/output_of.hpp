#pragma once

#include <string>
#include <vector>

namespace simgpu {

/// Runs a program with further variables of the environment ("NAME=value"), and returns what it
/// writes to standard output; nothing if it fails.
std::string output_of(const std::vector<std::string>& command,
                      const std::vector<std::string>& variables = {});

}  // namespace simgpu
