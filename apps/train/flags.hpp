#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "command_line.hpp"

namespace train {

/// An additional requirement of a flag. flag_rules.cpp checks the requirement and reports the
/// error.
enum class Needs {
  nothing,
  pictures,           ///< a folder of images as --data
  pictures_or_table,  ///< a folder of images or a CSV file as --data
  table,              ///< a CSV file as --data
  checkpoint,         ///< a --checkpoint folder
  out,                ///< an --out folder
};

/// A flag as described in flags.inc.
struct Flag {
  std::string name = {};          ///< including the dashes
  std::string takes = {};         ///< the value in --help; empty for a bool
  CLI::Validator check = {};      ///< checks only the value itself
  Needs needs = Needs::nothing;   ///< checked if the flag is given
  bool is_saved = false;          ///< whether a resumed run must use the same value
  bool is_for_predict = false;    ///< whether `predict` also accepts the flag
  std::string default_text = {};  ///< shown in --help instead of the default value
  std::string help = {};
};

/// A flag and the member of `CommandLine` that stores its value.
struct BoundFlag : Flag {
  std::string group = {};  ///< the heading in --help
  /// Adds the option that sets the member.
  std::function<CLI::Option*(CLI::App&, CommandLine&)> add = {};
  /// Returns the value as stored in flags.txt. For a path, the stored value only indicates whether
  /// a path is given.
  std::function<std::string(const CommandLine&)> text = {};
};

/// Returns all flags in the order in which --help lists them.
const std::vector<BoundFlag>& flags();

/// Rejects an empty path, which is usually the result of an unset shell variable. `what` describes
/// the path.
CLI::Validator path_of(const std::string& what);

/// Returns the shortest text that parses to the same number, such as "2" and "0.1".
std::string shortest_text(double value);

}  // namespace train
