#pragma once

#include <iosfwd>
#include <string>

#include "info/machine.hpp"

namespace apps {

/// Prints the information as a table. The last line states the verdict.
std::ostream& operator<<(std::ostream& out, const Machine& machine);

/// Returns the information and the verdict as JSON. Unknown values are null. Bytes that are not
/// valid UTF-8 become U+FFFD.
std::string to_json(const Machine& machine);

}  // namespace apps
