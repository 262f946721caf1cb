#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sconce::detail {

/// Returns how many of the given CPUs were busy between two readings of /proc/stat. The busy times
/// of all CPUs are added up, because a process may move between CPUs.
int busy_cpus(const std::string& before, const std::string& after, const std::vector<int>& cpus);

/// Returns the number of CPUs that a cgroup's cpu.max allows, rounded down. Returns std::nullopt if
/// there is no limit.
std::optional<int> quota_of(const std::string& cpu_max);

}  // namespace sconce::detail
