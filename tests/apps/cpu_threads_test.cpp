#include "cpu_threads.hpp"

#include <sched.h>

#include <thread>

#include "apps/run_train.hpp"
#include "catch.hpp"
#include "support/processes.hpp"

using Catch::Matchers::Matches;
using Catch::Matchers::StartsWith;

namespace {

// Restricts this process and its child processes to the first two available CPUs for the lifetime
// of the object.
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

TEST_CASE("training uses the idle CPUs and prints their number on the first line of output") {
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
    // If the two CPUs share a core, LibTorch uses one thread, and the output line does not explain
    // why.
    CHECK_THAT(
        hardware_line("-u OMP_NUM_THREADS -u MKL_NUM_THREADS"),
        Matches("hardware: 1 CPU thread( \\((1 of 2 CPUs is|2 of 2 CPUs are) busy\\))?, .*"));
  }
  CHECK_THAT(hardware_line("OMP_NUM_THREADS=2"), StartsWith("hardware: 2 CPU threads, "));
}
