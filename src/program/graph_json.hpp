#pragma once

#include <map>
#include <string>

#include "program/graph.hpp"

// The text of a program: everything but the bytes of its tensors. The format is described in
// docs/recorded_programs.md.
namespace sconce::program::detail {

/// CRC-32s of tensors, as eight hexadecimal digits, by the tensors' names in the file.
using Checksums = std::map<std::string, std::string>;

/// Returns the JSON of the graph. `tensor_names` has a weight's name in the file by its number.
std::string json_of(const Graph& graph, const std::map<size_t, std::string>& tensor_names,
                    const Checksums& checksums);

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
