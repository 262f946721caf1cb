#include "cpu_use.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <sstream>

namespace sconce::detail {

namespace {

struct Ticks {
  int64_t busy = 0;
  int64_t all = 0;
};

// The times recorded for each CPU: user, nice, system, idle, iowait, irq, softirq, and steal.
std::map<std::string, Ticks> ticks_of(const std::string& stat) {
  std::map<std::string, Ticks> of;
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (!name.starts_with("cpu")) continue;
    Ticks& ticks = of[name];
    int64_t value = 0;
    for (int i = 0; i < 8 && words >> value; ++i) {
      ticks.all += value;
      if (i != 3 && i != 4) ticks.busy += value;
    }
  }
  return of;
}

}  // namespace

int busy_cpus(const std::string& before, const std::string& after, const std::vector<int>& cpus) {
  const auto begin = ticks_of(before), end = ticks_of(after);
  double busy = 0;
  for (const int cpu : cpus) {
    const auto first = begin.find("cpu" + std::to_string(cpu));
    const auto last = end.find("cpu" + std::to_string(cpu));
    if (first == begin.end() || last == end.end()) continue;
    const auto all = static_cast<double>(last->second.all - first->second.all);
    if (all > 0) busy += static_cast<double>(last->second.busy - first->second.busy) / all;
  }
  return static_cast<int>(std::lround(busy));
}

std::optional<int> quota_of(const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  double quota = 0, period = 0;
  if (!(words >> quota >> period) || period <= 0) return {};
  return std::max(static_cast<int>(quota / period), 1);
}

}  // namespace sconce::detail
