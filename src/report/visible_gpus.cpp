#include "report/visible_gpus.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <sstream>
#include <tuple>

namespace sconce {

namespace {

// Returns the index of the GPU that an entry in CUDA_VISIBLE_DEVICES specifies.
std::optional<size_t> place_of(std::string entry, const std::vector<GpuInfo>& gpus) {
  entry.erase(0, entry.find_first_not_of(" \t"));
  entry.erase(entry.find_last_not_of(" \t") + 1);
  if (entry.starts_with("GPU-")) {
    const auto fits = [&](const GpuInfo& gpu) { return gpu.uuid.starts_with(entry); };
    if (std::count_if(gpus.begin(), gpus.end(), fits) != 1) return {};
    return static_cast<size_t>(std::find_if(gpus.begin(), gpus.end(), fits) - gpus.begin());
  }
  size_t number = 0;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), number);
  if (error != std::errc() || end != entry.data() + entry.size()) return {};
  return number < gpus.size() ? std::optional(number) : std::nullopt;
}

// NVML and CUDA format bus IDs differently. The PCI domain has more digits in NVML, and the letter
// case may differ.
std::tuple<long, long, long> parts_of_bus(const std::string& id) {
  char* end = nullptr;
  const long domain = std::strtol(id.c_str(), &end, 16);
  const long bus = *end == ':' ? std::strtol(end + 1, &end, 16) : -1;
  const long device = *end == ':' ? std::strtol(end + 1, &end, 16) : -1;
  return {domain, bus, device};
}

// Returns whether the driver lists the GPUs in CUDA order. By default, CUDA lists the fastest GPU
// first.
bool has_order_of_cuda(const Environment& facts) {
  if (facts.device_order == "PCI_BUS_ID") return true;
  const auto& list = facts.visible_devices;
  if (list && list->starts_with("GPU-")) return true;
  const auto& gpus = facts.driver.gpus;
  return std::all_of(gpus.begin(), gpus.end(),
                     [&](const GpuInfo& gpu) { return gpu.name == gpus.front().name; });
}

}  // namespace

std::vector<size_t> visible_gpus(const Environment& facts) {
  const auto& gpus = facts.driver.gpus;
  std::vector<size_t> places;
  const auto& list = facts.visible_devices;
  if (!list) {
    places.resize(gpus.size());
    std::iota(places.begin(), places.end(), size_t{0});
    return places;
  }
  std::istringstream entries(*list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const auto place = place_of(entry, gpus);
    if (!place) break;
    // If a GPU is listed twice, CUDA does not expose any GPU.
    if (std::find(places.begin(), places.end(), *place) != places.end()) return {};
    places.push_back(*place);
  }
  return places;
}

void number_gpus(Environment& facts) {
  auto& gpus = facts.driver.gpus;
  const auto& buses = facts.torch.gpu_buses;
  for (size_t i = 0; i < buses.size(); ++i) {
    for (auto& gpu : gpus) {
      if (parts_of_bus(gpu.bus_id) == parts_of_bus(buses[i])) gpu.index = static_cast<int>(i);
    }
  }
  if (!buses.empty() || !has_order_of_cuda(facts)) return;
  int index = 0;
  for (const size_t place : visible_gpus(facts)) gpus[place].index = index++;
}

}  // namespace sconce
