#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "capture/recorded_step.hpp"
#include "program/graph.hpp"

namespace sconce::program::detail {

/// Operators of a step, between those calls that cannot be compiled, as a program. Its inputs are
/// the memory that it uses, each as a vector. It writes into that, except for memory that each
/// replay makes anew: that is an output.
struct StepPart {
  size_t begin;  // the first of the step's calls
  size_t end;    // the call after the last one
  Graph program = {};
  std::vector<at::Tensor> inputs = {};     // name the memory
  std::vector<at::Tensor> written = {};    // those of the inputs that it writes
  std::vector<at::Tensor> results = {};    // name the memory that the outputs become
  std::vector<at::Tensor> last_used = {};  // whose memory is freed afterwards
  int bits = 64;                           // of the least precise type that it computes in
};

/// Returns the parts of the step.
/// @throw c10::Error for a call that programs cannot contain.
std::vector<StepPart> parts_of(const sconce::detail::RecordedStep& step);

}  // namespace sconce::program::detail
