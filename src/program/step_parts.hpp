#pragma once

#include <vector>

#include "capture/recorded_step.hpp"
#include "program/graph.hpp"

namespace sconce::program::detail {

/// Operators of a step, between those calls that cannot be compiled, as a program. Its inputs are
/// the memory that it uses, each as a vector. It writes into that, except for memory that each
/// replay makes anew: that is an output.
struct StepPart {
  Graph program = {};
  sconce::detail::CompiledCall call;  // of the program, without its code
};

/// Returns the parts of the step.
/// @throw c10::Error for a call that programs cannot contain.
std::vector<StepPart> parts_of(const sconce::detail::RecordedStep& step);

}  // namespace sconce::program::detail
