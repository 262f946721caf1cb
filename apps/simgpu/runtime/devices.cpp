#include "simgpu/runtime/devices.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include "simgpu/runtime/settings.hpp"
#include "simgpu/runtime/visible_gpus.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

std::array<std::atomic<bool>, 64> contexts = {};

}  // namespace

const std::vector<int>& visible_gpus() {
  static const auto& visible = *new std::vector<int>(find_visible_gpus(settings().num_gpus));
  return visible;
}

int num_gpus() {
  return static_cast<int>(visible_gpus().size());
}

int& current_device() {
  thread_local int device = 0;
  return device;
}

bool is_device(int device) {
  return device >= 0 && device < num_gpus();
}

void make_context(int device) {
  contexts.at(static_cast<size_t>(device)) = true;
}

bool has_context(int device) {
  return is_device(device) && contexts.at(static_cast<size_t>(device));
}

bool has_any_context() {
  return std::any_of(contexts.begin(), contexts.end(),
                     [](const auto& made) { return made.load(); });
}

}  // namespace simgpu
