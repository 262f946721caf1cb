#pragma once

#include <cstddef>
#include <string>

namespace simgpu {

/// What happens when two pieces of work race.
enum class RaceMode { report, raise, off };

/// What the environment asks for. The program that starts the process has checked it.
struct Settings {
  int num_gpus = 2;                   ///< SCONCE_SIMGPU_GPUS
  size_t memory = size_t{8} << 30;    ///< SCONCE_SIMGPU_MEMORY: bytes of each GPU
  RaceMode races = RaceMode::report;  ///< SCONCE_SIMGPU_RACES: report, throw or off
  bool late_copies = true;            ///< SCONCE_SIMGPU_LATE_COPIES: 1 or 0
  std::string counts = {};            ///< SCONCE_SIMGPU_COUNTS: a file, if anything is counted
};

/// Returns the settings, read from the environment at the first call.
const Settings& settings();

}  // namespace simgpu
