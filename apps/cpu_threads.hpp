#pragma once

#include <optional>
#include <string>
#include <vector>

namespace apps {

/// Makes LibTorch use as many threads as this process has CPUs to itself, and returns their number
/// as text, with the reason where it is not LibTorch's own. OpenMP's threads wait for each other by
/// spinning: where another process takes the CPU of one, all wait for it, up to 70 times as long as
/// one thread computes. Takes 50 ms to see what is busy. Where OMP_NUM_THREADS or MKL_NUM_THREADS
/// is set, that is the number. Call it before LibTorch computes.
std::string choose_threads();

/// Returns how many of these CPUs were busy between two texts of /proc/stat, all their busy times
/// together: a process may move from one to another.
int busy_cpus(const std::string& before, const std::string& after, const std::vector<int>& cpus);

/// Returns the CPUs that the text of a cgroup's cpu.max allows, rounded down, or nothing for any.
std::optional<int> quota_of(const std::string& cpu_max);

}  // namespace apps
