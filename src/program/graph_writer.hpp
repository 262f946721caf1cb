#pragma once

#include <map>
#include <string>

#include "program/graph.hpp"

namespace sconce::program::detail {

/// Returns the graph as JSON, which includes everything except the bytes of its tensors.
/// `tensor_names` maps a weight's number to its name in the file.
std::string json_of(const Graph& graph, const std::map<size_t, std::string>& tensor_names,
                    const Checksums& checksums);

}  // namespace sconce::program::detail
