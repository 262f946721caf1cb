#include "cpu_threads.hpp"

#include <ATen/Parallel.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <thread>

namespace apps {

namespace {

struct Ticks {
  int64_t busy = 0;
  int64_t all = 0;
};

// The times of each CPU: user, nice, system, idle, iowait, irq, softirq and steal.
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

std::string text_of(const char* file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<int> allowed_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0)
    return cpus;  // there are more CPUs than cpu_set_t has room for
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &mask)) cpus.push_back(i);
  }
  return cpus;
}

int busy_now(const std::vector<int>& cpus) {
  const std::string before = text_of("/proc/stat");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return busy_cpus(before, text_of("/proc/stat"), cpus);
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
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

std::string choose_threads() {
  const int most = at::get_num_threads();
  int threads = most;
  std::string reason;
  if (most > 1 && !is_set("OMP_NUM_THREADS") && !is_set("MKL_NUM_THREADS")) {
    const auto cpus = allowed_cpus();
    const auto count = static_cast<int>(cpus.size());
    const int busy = busy_now(cpus);
    if (count > 0 && count - busy < threads) {
      threads = std::max(count - busy, 1);
      reason = " (" + std::to_string(busy) + " of " + std::to_string(count) +
               (busy == 1 ? " CPUs is busy)" : " CPUs are busy)");
    }
    // A container sees its own cgroup here.
    const auto quota = quota_of(text_of("/sys/fs/cgroup/cpu.max"));
    if (quota && *quota < threads) {
      threads = *quota;
      reason = " (the quota of the cgroup)";
    }
    if (threads < most) at::set_num_threads(threads);
  }
  return std::to_string(threads) + (threads == 1 ? " CPU thread" : " CPU threads") + reason;
}

}  // namespace apps
