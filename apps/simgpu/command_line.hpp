#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fail.hpp"

namespace simgpu {

using apps::UsageError;

/// The command line of sconce-simgpu.
struct CommandLine {
  std::string text = {};  ///< the output of --help or --version; empty for a run
  int gpus = 2;
  uint64_t memory = uint64_t{8} << 30;  ///< of each GPU, in bytes
  std::string races = "report";         ///< off, report, fail, throw or strict
  bool late_copies = true;
  bool places = false;  ///< whether reports include where work was requested
  bool hide_real_gpus = false;
  std::string counts = {};                ///< file for the counts; empty for none
  std::string ignore = {};                ///< file of known reports; empty for none
  std::string report = {};                ///< file for the reports; empty for none
  std::vector<std::string> program = {};  ///< its name and its arguments
};

/// @throw UsageError if the arguments are invalid.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace simgpu
