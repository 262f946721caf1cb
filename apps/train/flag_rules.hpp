#pragma once

#include <CLI/CLI.hpp>

#include "command_line.hpp"

namespace train {

/// Checks that the given flags can be combined and that their requirements are met.
/// @throw UsageError with the first flag that violates a rule.
void check_flag_rules(const CLI::App& app, const CommandLine& line);

}  // namespace train
