#pragma once

#include <map>
#include <string>

#include "sconce/training/stateful.hpp"

namespace sconce {

/// Values by the names that they have in state dicts, as text.
using Settings = std::map<std::string, std::string>;

/// What the parts "optimizer" and "scheduler", where there is one, were given, of their state
/// dicts, without what changes as they step.
Settings settings_of(const NamedStates& states);

/// Names each that is another in `now`, with both values; empty if none is.
std::string describe_changes(const Settings& given, const Settings& now);

}  // namespace sconce
