#pragma once

#include <filesystem>
#include <string>

namespace simgpu {

/// Returns the file that a shell would run for this name.
/// @throw UsageError if there is no such file or it cannot be executed.
std::filesystem::path find_program(const std::string& name);

/// Returns the file that the system loads to run a program. For a script that starts with #!, this
/// is the interpreter. Otherwise, it is the program itself.
/// @throw UsageError if the file is missing, or is neither a script nor a dynamically linked
/// program for this machine.
std::filesystem::path executable_of(const std::filesystem::path& program);

}  // namespace simgpu
