#pragma once

#include <map>
#include <string>

#include "sconce/training/stateful.hpp"

namespace sconce {

/// Values in text form, keyed by their names in state dicts.
using Settings = std::map<std::string, std::string>;

/// Returns the options of the parts. If there is a scheduler, omits the optimizer's values that the
/// scheduler may set.
Settings settings_of(const NamedStates& states);

/// Returns a string that lists each value that differs in `now`, including both values. Returns an
/// empty string if no value differs.
std::string describe_changes(const Settings& given, const Settings& now);

}  // namespace sconce
