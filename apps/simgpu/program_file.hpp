#pragma once

#include <filesystem>
#include <string>

namespace simgpu {

/// Returns the file that a shell would run for this name.
/// @throw UsageError if there is none, or if it cannot be executed.
std::filesystem::path find_program(const std::string& name);

/// Returns the file that the system loads to run a program: the interpreter of a script that
/// begins with #!, otherwise the program itself.
/// @throw UsageError if it is not there, or neither a script nor a program of this machine that is
/// linked dynamically.
std::filesystem::path executable_of(const std::filesystem::path& program);

}  // namespace simgpu
