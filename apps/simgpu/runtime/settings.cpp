#include "simgpu/runtime/settings.hpp"

#include <cstdlib>
#include <string_view>
#include <utility>

namespace simgpu {

namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

RaceMode race_mode(std::string_view name) {
  for (const auto& [known, mode] : {std::pair("off", RaceMode::off),
                                    {"fail", RaceMode::fail},
                                    {"throw", RaceMode::raise},
                                    {"strict", RaceMode::strict}}) {
    if (name == known) return mode;
  }
  return RaceMode::report;
}

Settings read_settings() {
  Settings read;
  if (const auto gpus = variable("SCONCE_SIMGPU_GPUS"); !gpus.empty()) {
    read.num_gpus = std::atoi(gpus.data());
  }
  if (const auto memory = variable("SCONCE_SIMGPU_MEMORY"); !memory.empty()) {
    read.memory = std::strtoull(memory.data(), nullptr, 10);
  }
  read.races = race_mode(variable("SCONCE_SIMGPU_RACES"));
  read.counts = variable("SCONCE_SIMGPU_COUNTS");
  read.places = variable("SCONCE_SIMGPU_PLACES") == "1";
  read.ignore = variable("SCONCE_SIMGPU_IGNORE");
  read.report = variable("SCONCE_SIMGPU_REPORT");
  read.late_copies = variable("SCONCE_SIMGPU_LATE_COPIES") != "0";
  return read;
}

}  // namespace

const Settings& settings() {
  static const auto& read =
      *new Settings(read_settings());  // never destroyed, because it is read at process exit
  return read;
}

}  // namespace simgpu
