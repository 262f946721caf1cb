#pragma once

#include <string>

namespace simgpu {

/// Returns the line of Python that the calling thread is executing, such as "train.py:12": the
/// innermost line outside the torch package. The result is empty if the process does not contain
/// Python or the thread is not running Python code.
std::string python_place();

}  // namespace simgpu
