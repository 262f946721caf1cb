#pragma once

#include <filesystem>
#include <string>

#include "program/graph.hpp"

// Program files are safetensors files that contain a program's JSON in their metadata.
namespace sconce::program::detail {

/// Writes the program atomically: either the complete file or no file appears.
/// @throw c10::Error with the prefix `error_prefix` if a weight's type or name cannot be stored, or
/// if writing fails.
void write_program(const std::filesystem::path& path, const Graph& graph,
                   const std::string& error_prefix);

/// Reads a program. Its tensors are on the CPU.
/// @throw c10::Error with the prefix `error_prefix` if the file is not a program or is damaged.
Graph read_program(const std::filesystem::path& path, const std::string& error_prefix);

}  // namespace sconce::program::detail
