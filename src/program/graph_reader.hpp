#pragma once

#include <string>
#include <vector>

#include "program/graph.hpp"

namespace sconce::program::detail {

/// What the JSON of a program says. The graph's weights have no tensors yet.
struct ParsedProgram {
  Graph graph;
  std::vector<std::string> tensor_names = {};  // of the weights, in the file
  Checksums checksums = {};
  bool has_example = false;
};

/// Parses the JSON of a program.
/// @throw c10::Error, beginning with `who` and naming the place, if it is not a program of version
/// 1, or it has an operator that LibTorch lacks or a program must not have.
ParsedProgram parse_program(const std::string& text, const std::string& who);

}  // namespace sconce::program::detail
