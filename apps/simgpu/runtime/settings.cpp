#include "simgpu/runtime/settings.hpp"

#include <cstdlib>
#include <string_view>

namespace simgpu {

namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Settings read_settings() {
  Settings read;
  if (const auto gpus = variable("SCONCE_SIMGPU_GPUS"); !gpus.empty()) {
    read.num_gpus = std::atoi(gpus.data());
  }
  if (const auto memory = variable("SCONCE_SIMGPU_MEMORY"); !memory.empty()) {
    read.memory = std::strtoull(memory.data(), nullptr, 10);
  }
  const auto races = variable("SCONCE_SIMGPU_RACES");
  if (races == "throw") read.races = RaceMode::raise;
  if (races == "off") read.races = RaceMode::off;
  read.counts = variable("SCONCE_SIMGPU_COUNTS");
  read.late_copies = variable("SCONCE_SIMGPU_LATE_COPIES") != "0";
  return read;
}

}  // namespace

const Settings& settings() {
  static const Settings read = read_settings();
  return read;
}

}  // namespace simgpu
