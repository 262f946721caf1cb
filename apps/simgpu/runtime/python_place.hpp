#pragma once

#include <string>

namespace simgpu {

/// Returns the line of Python that the calling thread runs, as "train.py:12": the innermost that is
/// not of the package torch. Empty if the process has no Python, or the thread runs none.
std::string python_place();

}  // namespace simgpu
