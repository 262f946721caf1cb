#pragma once

#include <string>

namespace simgpu {

/// Returns the line of Python that the calling thread is executing, such as "train.py:12": the
/// innermost line outside the torch package. Empty if the process has no Python or the thread runs
/// no Python code.
std::string python_place();

}  // namespace simgpu
