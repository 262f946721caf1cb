#pragma once

#include <map>
#include <string>

#include "sconce/training/stateful.hpp"

namespace sconce {

/// Values as text, by their names in state dicts.
using Settings = std::map<std::string, std::string>;

/// Returns the options of the parts. If there is a scheduler, the values of the optimizer that it
/// may set are left out.
Settings settings_of(const NamedStates& states);

/// Returns a text with each value that differs in `now`, and both values. Empty if none differs.
std::string describe_changes(const Settings& given, const Settings& now);

}  // namespace sconce
