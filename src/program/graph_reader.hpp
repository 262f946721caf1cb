#pragma once

#include <string>
#include <vector>

#include "program/graph.hpp"

namespace sconce::program::detail {

/// The contents of a program's JSON. The weights in the graph do not contain tensors yet.
struct ParsedProgram {
  Graph graph;
  std::vector<std::string> tensor_names = {};  // names of the weights in the file
  Checksums checksums = {};
  bool has_example = false;
};

/// Parses the JSON of a program.
/// @throw c10::Error, with a message that starts with `error_prefix` and contains the location, if
/// the text is not a program in version 1 of the format, or if it contains an operator that
/// LibTorch does not provide or that programs must not contain.
ParsedProgram parse_program(const std::string& text, const std::string& error_prefix);

}  // namespace sconce::program::detail
