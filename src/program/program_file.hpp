#pragma once

#include <filesystem>
#include <string>

#include "program/graph.hpp"

// Program files: safetensors files whose metadata contains the JSON of a program.
namespace sconce::program::detail {

/// Writes the program atomically: either the complete file appears, or no file.
/// @throw c10::Error, prefixed with `who`, if a weight's type or name cannot be stored, or if
/// writing fails.
void write_program(const std::filesystem::path& path, const Graph& graph, const std::string& who);

/// Reads a program. Its tensors are on the CPU.
/// @throw c10::Error, prefixed with `who`, if the file is not a program or is damaged.
Graph read_program(const std::filesystem::path& path, const std::string& who);

}  // namespace sconce::program::detail
