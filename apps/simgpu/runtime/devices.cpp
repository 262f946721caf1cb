#include "simgpu/runtime/devices.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <numeric>

#include "simgpu/runtime/settings.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

std::array<std::atomic<bool>, 64> contexts = {};

// Returns -1 for what is not a number.
int parse_index(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  int index = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), index);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() ? index : -1;
}

std::vector<int> all_gpus(int num_gpus) {
  std::vector<int> all(static_cast<size_t>(num_gpus));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

std::vector<int> visible_gpus(std::string_view indices, int num_gpus) {
  std::vector<int> visible;
  while (true) {
    const auto comma = indices.find(',');
    const int index = parse_index(indices.substr(0, comma));
    if (index < 0 || index >= num_gpus) return visible;
    if (std::find(visible.begin(), visible.end(), index) != visible.end()) return {};
    visible.push_back(index);
    if (comma == std::string_view::npos) return visible;
    indices.remove_prefix(comma + 1);
  }
}

const std::vector<int>& visible_gpus() {
  static const auto& visible = *new std::vector<int>([] {
    const char* indices = std::getenv("CUDA_VISIBLE_DEVICES");
    const int all = settings().num_gpus;
    return indices == nullptr ? all_gpus(all) : visible_gpus(indices, all);
  }());
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
