#pragma once

#include <string>
#include <vector>

#include "program/graph.hpp"
#include "program/tracer.hpp"

namespace sconce::program::detail {

/// A run of the function with specific values of the dynamic sizes.
struct TraceAt {
  std::vector<int64_t> sizes;
  Trace trace;
};

/// Returns the sizes with their names, such as "batch = 3, length = 7".
std::string at_text(const std::vector<int64_t>& sizes, const std::vector<std::string>& names);

/// Returns calls whose arguments match the arguments in each trace at that trace's sizes. `corners`
/// contains the traces at the corners of `smaller`, in order (see `size_at_corner`).
/// @throw c10::Error with the call if the traces differ in anything except integers.
std::vector<Call> merge_traces(const std::vector<TraceAt>& corners,
                               const std::vector<int64_t>& smaller,
                               const std::vector<std::string>& names);

/// Returns a description of how the calls differ from the trace, or an empty string.
std::string difference(const std::vector<Call>& calls, const TraceAt& other,
                       const std::vector<std::string>& names);

/// Returns a description of how the constants of two traces differ, or an empty string.
std::string difference(const std::vector<Weight>& constants, const std::vector<Weight>& other);

}  // namespace sconce::program::detail
