#pragma once

#include <optional>
#include <string>
#include <vector>

namespace apps {

/// Sets LibTorch's number of threads to the number of CPUs that no other process keeps busy.
/// Returns the number as text, with the reason if it is not LibTorch's default. OpenMP's threads
/// spin while they wait for each other. If another process uses the CPU of one thread, all wait for
/// it, which can take 70 times as long as one thread alone. Measures for 50 ms. Changes nothing if
/// OMP_NUM_THREADS or MKL_NUM_THREADS is set. Call it before LibTorch computes.
std::string choose_threads();

/// Returns how many of these CPUs were busy between two readings of /proc/stat. Adds up their busy
/// times, because a process may move between CPUs.
int busy_cpus(const std::string& before, const std::string& after, const std::vector<int>& cpus);

/// Returns the number of CPUs that a cgroup's cpu.max allows, rounded down, or nothing if it sets
/// no limit.
std::optional<int> quota_of(const std::string& cpu_max);

}  // namespace apps
