#include "sconce/cuda/memory.hpp"

#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "support/error_of.hpp"
#include "support/require_gpu.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::StartsWith;
using sconce::cuda::memory_stats;
using sconce::cuda::reset_peak_memory_stats;
using sconce::test::error_of;

namespace {

constexpr int64_t MiB = 1 << 20;

// If not empty, this file is opened instead of /proc/self/status.
std::string status_file;

FILE* open_with(const char* function, const char* name, const char* mode) {
  const bool is_status = !status_file.empty() && std::string_view(name) == "/proc/self/status";
  const auto next = reinterpret_cast<decltype(&::fopen)>(::dlsym(RTLD_NEXT, function));
  return next(is_status ? status_file.c_str() : name, mode);
}

}  // namespace

// The linker substitutes these functions for the C library's functions. The substitution also
// affects std::ifstream, which calls fopen64 or, with g++ 16 and newer, fopen.
extern "C" FILE* fopen64(const char* name, const char* mode) {
  return open_with("fopen64", name, mode);
}

extern "C" FILE* fopen(const char* name, const char* mode) {
  return open_with("fopen", name, mode);
}

TEST_CASE("memory_stats for the CPU reports the process's memory, and the peak can be reset",
          "[alone]") {
  const auto before = memory_stats(sconce::cpu());
  CHECK(before.allocated > 10 * MiB);
  CHECK(before.max_allocated >= before.allocated);
  CHECK(before.reserved == before.allocated);

  // The tensor is too large for malloc to retain its memory, so freeing the tensor returns the
  // memory to the system.
  auto large = torch::ones({256 * MiB}, torch::kByte);
  const auto with = memory_stats(sconce::cpu());
  CHECK(with.allocated - before.allocated > 240 * MiB);
  large = torch::Tensor();
  const auto after = memory_stats(sconce::cpu());
  CHECK(with.allocated - after.allocated > 240 * MiB);
  CHECK(after.max_allocated >= with.allocated - MiB);

  reset_peak_memory_stats(sconce::cpu());
  const auto reset = memory_stats(sconce::cpu());
  CHECK(after.max_allocated - reset.max_allocated > 240 * MiB);
  CHECK(reset.max_reserved == reset.max_allocated);
}

TEST_CASE("memory_stats for the CPU reads the peak from getrusage if /proc does not report one",
          "[alone]") {
  const sconce::test::TempDir folder;
  rusage usage = {};
  REQUIRE(::getrusage(RUSAGE_SELF, &usage) == 0);
  status_file = folder.write("status", "Name:\ttest\nVmRSS:\t    1024 kB\n").string();
  sconce::cuda::MemoryStats stats;
  const std::string error = error_of([&] { stats = memory_stats(sconce::cpu()); });
  status_file = folder.write("status", "Name:\ttest\n").string();
  const std::string without = error_of([&] { memory_stats(sconce::cpu()); });
  status_file.clear();
  CHECK(error == "nothing was thrown");
  CHECK(stats.allocated == MiB);
  CHECK(stats.max_allocated >= usage.ru_maxrss * 1024);
  CHECK(stats.max_reserved == stats.max_allocated);
  CHECK_THAT(without, StartsWith("sconce::cuda::memory_stats: expected 'VmRSS'"));
}

TEST_CASE("memory_stats for a GPU that has never stored a tensor returns zeros") {
  if (sconce::num_gpus() > 0) SKIP("another case may have used the GPU");
  const auto stats = memory_stats(sconce::gpu());
  CHECK(stats.allocated == 0);
  CHECK(stats.max_allocated == 0);
  CHECK(stats.reserved == 0);
  CHECK(stats.max_reserved == 0);
  reset_peak_memory_stats(sconce::gpu());
  sconce::cuda::empty_cache();
}

TEST_CASE("memory_stats rejects a device that is neither a CPU nor a GPU") {
  CHECK_THAT(error_of([] { memory_stats(torch::kMeta); }),
             StartsWith("sconce::cuda::memory_stats: expected a CPU or CUDA device, got meta"));
  CHECK_THAT(error_of([] { reset_peak_memory_stats(torch::kMeta); }),
             StartsWith("sconce::cuda::reset_peak_memory_stats: expected a CPU or CUDA device"));
}

TEST_CASE("memory_stats for a GPU reports allocated and reserved memory and the peak of each",
          "[gpu]") {
  sconce::test::require_gpu();
  const auto device = sconce::gpu();
  sconce::cuda::empty_cache();
  const auto before = memory_stats(device);
  auto large = torch::empty({64 * MiB}, torch::device(device).dtype(torch::kByte));
  const auto with = memory_stats(device);
  CHECK(with.allocated - before.allocated == 64 * MiB);
  CHECK(with.reserved >= with.allocated);
  large = torch::Tensor();
  const auto cached = memory_stats(device);
  CHECK(cached.allocated == before.allocated);
  CHECK(cached.reserved == with.reserved);
  CHECK(cached.max_allocated >= with.allocated);
  reset_peak_memory_stats(device);
  CHECK(memory_stats(device).max_allocated == before.allocated);
  sconce::cuda::empty_cache();
  CHECK(memory_stats(device).reserved < with.reserved);
}
