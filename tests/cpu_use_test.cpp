#include "cpu_use.hpp"

#include "catch.hpp"

namespace {

const std::string stat_before =
    "cpu  300 0 0 300 0 0 0 0 0 0\n"
    "cpu0 100 0 0 100 0 0 0 0 0 0\n"
    "cpu1 100 0 0 100 0 0 0 0 0 0\n"
    "cpu2 100 0 0 100 0 0 0 0 0 0\n"
    "intr 1 2 3\n";

// Returns the same counters five ticks later. CPU i was busy for busy[i] of the five ticks. Each
// CPU's busy ticks are counted in a different column of /proc/stat.
std::string stat_after(const std::vector<int>& busy) {
  const std::string all[] = {
      std::to_string(100 + busy[0]) + " 0 0 " + std::to_string(105 - busy[0]),
      "100 " + std::to_string(busy[1]) + " 0 100 " + std::to_string(5 - busy[1]),
      "100 0 0 " + std::to_string(105 - busy[2]) + " 0 0 0 " + std::to_string(busy[2])};
  std::string text = "cpu  0 0 0 0 0 0 0 0 0 0\n";
  for (int i = 0; i < 3; ++i) text += "cpu" + std::to_string(i) + " " + all[i] + "\n";
  return text;
}

int busy_of(const std::vector<int>& ticks, const std::vector<int>& cpus) {
  return sconce::detail::busy_cpus(stat_before, stat_after(ticks), cpus);
}

}  // namespace

TEST_CASE("the number of busy CPUs is computed from the CPUs' busy time between two readings") {
  CHECK(busy_of({0, 0, 0}, {0, 1, 2}) == 0);
  CHECK(busy_of({5, 0, 0}, {0, 1, 2}) == 1);
  CHECK(busy_of({5, 5, 5}, {0, 1, 2}) == 3);
  CHECK(busy_of({5, 5, 5}, {1}) == 1);     // the mask does not include the other CPUs
  CHECK(busy_of({3, 2, 0}, {0, 1}) == 1);  // a process that has moved to another CPU
  CHECK(busy_of({1, 1, 0}, {0, 1}) == 0);
  CHECK(busy_of({5, 5, 5}, {0, 7}) == 1);  // CPU 7 is not in the text
  CHECK(sconce::detail::busy_cpus("", "", {0, 1}) == 0);
  CHECK(sconce::detail::busy_cpus(stat_before, stat_before, {0, 1}) == 0);
}

TEST_CASE("a CPU quota is rounded down, but not below one CPU") {
  CHECK(sconce::detail::quota_of("200000 100000\n") == 2);
  CHECK(sconce::detail::quota_of("150000 100000\n") == 1);
  CHECK(sconce::detail::quota_of("50000 100000\n") == 1);
  CHECK_FALSE(sconce::detail::quota_of("max 100000\n"));
  CHECK_FALSE(sconce::detail::quota_of(""));
}
