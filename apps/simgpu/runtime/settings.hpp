#pragma once

#include <cstddef>
#include <string>

namespace simgpu {

/// What happens when two pieces of work race. Each mode does what those before it do, and more.
enum class RaceMode {
  off,
  report,  ///< writes a line
  fail,    ///< ends the process with 1 where it would end with 0
  raise,   ///< throws the line
  strict,  ///< finds a missing record_stream when the memory is freed, and not when it is used
           ///< again
};

/// What the environment asks for. The program that starts the process has checked it.
struct Settings {
  int num_gpus = 2;                   ///< SCONCE_SIMGPU_GPUS
  size_t memory = size_t{8} << 30;    ///< SCONCE_SIMGPU_MEMORY: bytes of each GPU
  RaceMode races = RaceMode::report;  ///< SCONCE_SIMGPU_RACES: off, report, fail, throw or strict
  bool late_copies = true;            ///< SCONCE_SIMGPU_LATE_COPIES: 1 or 0
  std::string counts = {};            ///< SCONCE_SIMGPU_COUNTS: a file, if anything is counted
  bool places = false;                ///< SCONCE_SIMGPU_PLACES: 1 or 0
  std::string ignore = {};            ///< SCONCE_SIMGPU_IGNORE: a file of known reports, or none
  std::string report = {};            ///< SCONCE_SIMGPU_REPORT: a file for the reports, or none
};

/// Returns the settings, read from the environment at the first call.
const Settings& settings();

}  // namespace simgpu
