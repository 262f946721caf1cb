#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fail.hpp"

namespace simgpu {

using apps::UsageError;

/// The command-line arguments of sconce-simgpu.
struct CommandLine {
  std::string text = {};  ///< the output of --help or --version; empty if a program is to be run
  int gpus = 2;
  uint64_t memory = uint64_t{8} << 30;  ///< memory of each GPU, in bytes
  std::string races = "report";         ///< off, report, fail, throw, or strict
  bool late_copies = true;
  bool places = false;  ///< whether reports show where work was requested
  bool hide_real_gpus = false;
  std::string counts = {};                ///< file for the counts; empty if not requested
  std::string ignore = {};                ///< file of known reports; empty if not given
  std::string report = {};                ///< file for the reports; empty if not requested
  std::vector<std::string> program = {};  ///< the program's name and arguments
};

/// @throw UsageError if the arguments are invalid.
CommandLine parse_command_line(int argc, char** argv);

}  // namespace simgpu
