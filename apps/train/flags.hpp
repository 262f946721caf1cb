#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "command_line.hpp"

namespace train {

/// What a flag requires besides its value. flag_rules.cpp checks the requirement and reports the
/// error.
enum class Needs {
  nothing,
  pictures,           ///< a folder of pictures as --data
  pictures_or_table,  ///< a folder of pictures or a CSV file as --data
  table,              ///< a CSV file as --data
  checkpoint,         ///< a --checkpoint folder
  out,                ///< an --out folder
};

/// A flag as flags.inc describes it.
struct Flag {
  std::string name = {};          ///< with its dashes
  std::string takes = {};         ///< the value in --help; empty for a bool
  CLI::Validator check = {};      ///< checks only the value
  Needs needs = Needs::nothing;   ///< checked when the flag is given
  bool is_saved = false;          ///< whether a resumed run must use the same value
  bool is_for_predict = false;    ///< whether `predict` also accepts the flag
  std::string default_text = {};  ///< shown in --help instead of the default value
  std::string help = {};
};

/// A flag and the member of `CommandLine` that holds its value.
struct BoundFlag : Flag {
  std::string group = {};  ///< the heading in --help
  /// Adds the option that fills the member.
  std::function<CLI::Option*(CLI::App&, CommandLine&)> add = {};
  /// Returns the value as stored in flags.txt. For a path, this is only whether one is given.
  std::function<std::string(const CommandLine&)> text = {};
};

/// Returns all flags, in the order of --help.
const std::vector<BoundFlag>& flags();

/// Rejects an empty path, which results from an unset shell variable. `what` describes the path.
CLI::Validator path_of(const std::string& what);

/// Returns the shortest text that parses to the same number, such as "2" and "0.1".
std::string shortest_text(double value);

}  // namespace train
