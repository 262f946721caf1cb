#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sconce::detail {

/// Returns how many of these CPUs were busy between two readings of /proc/stat. Adds up their busy
/// times, because a process may move between CPUs.
int busy_cpus(const std::string& before, const std::string& after, const std::vector<int>& cpus);

/// Returns the number of CPUs that a cgroup's cpu.max allows, rounded down, or nothing if it sets
/// no limit.
std::optional<int> quota_of(const std::string& cpu_max);

}  // namespace sconce::detail
