#include "sconce/tuned_threads.hpp"

#include <ATen/Parallel.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "cpu_use.hpp"

namespace sconce {

namespace {

std::string text_of(const char* file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<int> allowed_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0)
    return cpus;  // there are more CPUs than fit in cpu_set_t
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &mask)) cpus.push_back(i);
  }
  return cpus;
}

int busy_now(const std::vector<int>& cpus) {
  const std::string before = text_of("/proc/stat");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return detail::busy_cpus(before, text_of("/proc/stat"), cpus);
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

TunedThreads tune_threads() {
  const int most = at::get_num_threads();
  TunedThreads tuned{.threads = most};
  if (most == 1 || is_set("OMP_NUM_THREADS") || is_set("MKL_NUM_THREADS")) return tuned;
  const auto cpus = allowed_cpus();
  const auto count = static_cast<int>(cpus.size());
  const int busy = busy_now(cpus);
  if (count > 0 && count - busy < tuned.threads) {
    tuned.threads = std::max(count - busy, 1);
    tuned.reason = std::to_string(busy) + " of " + std::to_string(count) +
                   (busy == 1 ? " CPUs is busy" : " CPUs are busy");
  }
  // Inside a container, this path refers to the container's cgroup.
  const auto quota = detail::quota_of(text_of("/sys/fs/cgroup/cpu.max"));
  if (quota && *quota < tuned.threads) {
    tuned.threads = *quota;
    tuned.reason = "the cgroup quota";
  }
  if (tuned.threads < most) at::set_num_threads(tuned.threads);
  return tuned;
}

}  // namespace sconce
