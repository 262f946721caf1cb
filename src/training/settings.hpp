#pragma once

#include <map>
#include <string>

#include "sconce/training/stateful.hpp"

namespace sconce {

/// Values as text, by their names in state dicts.
using Settings = std::map<std::string, std::string>;

/// Returns the options in the state dicts of the part "optimizer" and of the schedulers. Values
/// that change with each step are left out.
Settings settings_of(const NamedStates& states);

/// Returns a text with each value that differs in `now`, and both values. Empty if none differs.
std::string describe_changes(const Settings& given, const Settings& now);

}  // namespace sconce
