#include "simgpu/runtime/visible_gpus.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <string_view>

namespace simgpu {

namespace {

// Returns -1 if the text is not a valid number.
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

std::vector<int> parse_indices(std::string_view indices, int num_gpus) {
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

}  // namespace

std::vector<int> find_visible_gpus(int num_gpus) {
  const char* indices = std::getenv("CUDA_VISIBLE_DEVICES");
  return indices == nullptr ? all_gpus(num_gpus) : parse_indices(indices, num_gpus);
}

}  // namespace simgpu
