#pragma once

#include <filesystem>
#include <string>

#include "program/graph.hpp"

// Program files: safetensors files whose texts contain the JSON of a program.
namespace sconce::program::detail {

/// Writes the program. The file appears complete or not at all.
/// @throw c10::Error, beginning with `who`, if a weight's type or name cannot be stored, or writing
/// fails.
void write_program(const std::filesystem::path& path, const Graph& graph, const std::string& who);

/// Reads a program. Its tensors are on the CPU.
/// @throw c10::Error, beginning with `who`, if it is not one or is damaged.
Graph read_program(const std::filesystem::path& path, const std::string& who);

}  // namespace sconce::program::detail
