#pragma once

#include <CLI/CLI.hpp>

#include "command_line.hpp"

namespace train {

/// Checks that the given flags can be used together and have what they need.
/// @throw UsageError naming the first one that cannot.
void check_flag_rules(const CLI::App& app, const CommandLine& line);

}  // namespace train
