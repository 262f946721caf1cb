#pragma once

#include <map>
#include <string>

#include "program/graph.hpp"

namespace sconce::program::detail {

/// Returns the JSON of the graph: everything but the bytes of its tensors. `tensor_names` has a
/// weight's name in the file by its number.
std::string json_of(const Graph& graph, const std::map<size_t, std::string>& tensor_names,
                    const Checksums& checksums);

}  // namespace sconce::program::detail
