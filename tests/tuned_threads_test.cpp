#include "sconce/tuned_threads.hpp"

#include <ATen/Parallel.h>
#include <sched.h>

#include <cstdlib>

#include "catch.hpp"

using sconce::tune_threads;

// Each case runs in a separate process.
TEST_CASE("tune_threads chooses at most one thread per CPU that the process may use", "[alone]") {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  ::unsetenv("OMP_NUM_THREADS");
  ::unsetenv("MKL_NUM_THREADS");
  at::set_num_threads(2);
  const auto tuned = tune_threads();
  CHECK(tuned.threads == 1);
  CHECK_THAT(tuned.reason, Catch::Matchers::ContainsSubstring(" of 1 CPUs "));
  CHECK(at::get_num_threads() == 1);
  CHECK(tune_threads().reason.empty());
}

TEST_CASE("tune_threads keeps a thread count set by an environment variable", "[alone]") {
  at::set_num_threads(2);
  for (const auto* variable : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    ::unsetenv("OMP_NUM_THREADS");
    ::unsetenv("MKL_NUM_THREADS");
    ::setenv(variable, "2", 1);
    CHECK(tune_threads().threads == 2);
    CHECK(at::get_num_threads() == 2);
  }
}
