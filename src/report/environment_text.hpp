#pragma once

#include <string>

#include "sconce/report/environment.hpp"

namespace sconce {

/// The verdict's name, as in the enumeration.
std::string name_of(GpuVerdict verdict);

}  // namespace sconce
