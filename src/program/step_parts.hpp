#pragma once

#include <vector>

#include "capture/recorded_step.hpp"
#include "program/graph.hpp"

namespace sconce::program::detail {

/// A program that contains consecutive operators of a step, between calls that cannot be compiled.
/// The inputs of the program are the memory that it uses, each as a vector. The program writes to
/// its inputs, except for memory that each replay allocates, which becomes an output.
struct StepPart {
  Graph program = {};
  sconce::detail::CompiledCall call;  // a call to the program, without its code
};

/// Returns the parts of the step.
/// @throw c10::Error for a call that programs cannot contain.
std::vector<StepPart> parts_of(const sconce::detail::RecordedStep& step);

}  // namespace sconce::program::detail
