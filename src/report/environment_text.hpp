#pragma once

#include <string>

#include "sconce/report/environment.hpp"

namespace sconce {

/// Returns the name of the enumerator, such as "usable".
std::string name_of(GpuVerdict verdict);

}  // namespace sconce
