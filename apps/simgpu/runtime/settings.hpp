#pragma once

#include <cstddef>
#include <string>

namespace simgpu {

/// The action to take when two pieces of work race. Each mode includes the actions of the previous
/// modes.
enum class RaceMode {
  off,
  report,  ///< writes a line to standard error
  fail,    ///< changes exit code 0 to 1
  raise,   ///< throws the line as an error
  strict,  ///< finds a missing record_stream when the memory is freed, rather than when it is used
           ///< again
};

/// The settings from environment variables, which the program that starts the process has already
/// checked.
struct Settings {
  int num_gpus = 2;                   ///< SCONCE_SIMGPU_GPUS
  size_t memory = size_t{8} << 30;    ///< SCONCE_SIMGPU_MEMORY: bytes per GPU
  RaceMode races = RaceMode::report;  ///< SCONCE_SIMGPU_RACES: off, report, fail, throw, or strict
  bool late_copies = true;            ///< SCONCE_SIMGPU_LATE_COPIES: 1 or 0
  std::string counts = {};            ///< SCONCE_SIMGPU_COUNTS: the file for counts, or none
  bool places = false;                ///< SCONCE_SIMGPU_PLACES: 1 or 0
  std::string ignore = {};            ///< SCONCE_SIMGPU_IGNORE: the file of known reports, or none
  std::string report = {};            ///< SCONCE_SIMGPU_REPORT: the file for reports, or none
};

/// Returns the settings, which are read from the environment on the first call.
const Settings& settings();

}  // namespace simgpu
