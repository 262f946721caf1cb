#include "cpu_threads.hpp"

#include <sched.h>

#include <thread>

#include "apps/run_train.hpp"
#include "catch.hpp"
#include "support/processes.hpp"

using Catch::Matchers::Matches;
using Catch::Matchers::StartsWith;

namespace {

const std::string stat_before =
    "cpu  300 0 0 300 0 0 0 0 0 0\n"
    "cpu0 100 0 0 100 0 0 0 0 0 0\n"
    "cpu1 100 0 0 100 0 0 0 0 0 0\n"
    "cpu2 100 0 0 100 0 0 0 0 0 0\n"
    "intr 1 2 3\n";

// The same five ticks later, of which CPU i was busy for busy[i], in different ways.
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
  return apps::busy_cpus(stat_before, stat_after(ticks), cpus);
}

// This process and those that it starts have the first two of its CPUs at most.
class TwoCpus {
 public:
  TwoCpus() {
    sched_getaffinity(0, sizeof(all_), &all_);
    cpu_set_t two;
    CPU_ZERO(&two);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++i) {
      if (CPU_ISSET(i, &all_)) CPU_SET(i, &two);
    }
    has_two_ = CPU_COUNT(&two) == 2;
    sched_setaffinity(0, sizeof(two), &two);
  }
  ~TwoCpus() { sched_setaffinity(0, sizeof(all_), &all_); }
  bool has_two() const { return has_two_; }

 private:
  cpu_set_t all_ = {};
  bool has_two_ = false;
};

std::string hardware_line(const std::string& variables) {
  const auto ran = sconce::test::run_program(
      "env " + variables +
      " " SCONCE_BIN_DIR "/sconce-train --model linear --epochs 1 --batch-size 500 --device cpu");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  return ran.out.substr(0, ran.out.find('\n'));
}

}  // namespace

TEST_CASE("busy CPUs are counted by their busy time between two readings") {
  CHECK(busy_of({0, 0, 0}, {0, 1, 2}) == 0);
  CHECK(busy_of({5, 0, 0}, {0, 1, 2}) == 1);
  CHECK(busy_of({5, 5, 5}, {0, 1, 2}) == 3);
  CHECK(busy_of({5, 5, 5}, {1}) == 1);     // the others are not of the mask
  CHECK(busy_of({3, 2, 0}, {0, 1}) == 1);  // a process that has moved
  CHECK(busy_of({1, 1, 0}, {0, 1}) == 0);
  CHECK(busy_of({5, 5, 5}, {0, 7}) == 1);  // one that is not in the text
  CHECK(apps::busy_cpus("", "", {0, 1}) == 0);
  CHECK(apps::busy_cpus(stat_before, stat_before, {0, 1}) == 0);
}

TEST_CASE("a CPU quota is rounded down to at least one CPU") {
  CHECK(apps::quota_of("200000 100000\n") == 2);
  CHECK(apps::quota_of("150000 100000\n") == 1);
  CHECK(apps::quota_of("50000 100000\n") == 1);
  CHECK_FALSE(apps::quota_of("max 100000\n"));
  CHECK_FALSE(apps::quota_of(""));
}

TEST_CASE("training uses the CPUs that are not busy and prints their number in its first line") {
  const TwoCpus cpus;
  if (!cpus.has_two()) SKIP("needs two CPUs");
  {
    sconce::test::Processes loops;  // until this scope ends
    for (int i = 0; i < 2; ++i) {
      loops.push_back(std::make_unique<sconce::test::Process>(
          std::vector<std::string>{"sh", "-c", "echo begun; while :; do :; done"},
          sconce::test::Variables{}));
      while (loops.back()->out().empty()) std::this_thread::yield();
    }
    // There is no reason in the line where the two are one core, for which LibTorch has one thread.
    CHECK_THAT(
        hardware_line("-u OMP_NUM_THREADS -u MKL_NUM_THREADS"),
        Matches("hardware: 1 CPU thread( \\((1 of 2 CPUs is|2 of 2 CPUs are) busy\\))?, .*"));
  }
  CHECK_THAT(hardware_line("OMP_NUM_THREADS=2"), StartsWith("hardware: 2 CPU threads, "));
}
