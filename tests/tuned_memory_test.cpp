#include "sconce/tuned_memory.hpp"

#include <ATen/ops/empty.h>
#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "support/temp_dir.hpp"

namespace {

// The sanitizers replace malloc with their own implementations.
const bool is_glibc = ::dlsym(RTLD_DEFAULT, "__asan_init") == nullptr &&
                      ::dlsym(RTLD_DEFAULT, "__tsan_init") == nullptr;

// Returns the number of pages that the system has assigned to this process so far.
long pages() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Touches four 30 MiB blocks that exist at the same time, like the activations in a training step.
void make_and_free() {
  constexpr size_t size = 30 << 20, page = 4096;
  std::array<std::unique_ptr<char[]>, 4> blocks;
  for (auto& block : blocks) {
    block = std::make_unique_for_overwrite<char[]>(size);
    for (size_t at = 0; at < size; at += page) static_cast<volatile char&>(block[at]) = 1;
  }
}

long pages_for_100_steps() {
  make_and_free();
  const long before = pages();
  for (int i = 0; i < 100; ++i) make_and_free();
  return pages() - before;
}

// Returns whether the kernel has marked the memory for huge pages. The VmFlags of a marked mapping
// in /proc/self/smaps contain "hg".
bool is_marked(const at::Tensor& tensor) {
  const auto address = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (std::istringstream(line) >> std::hex >> begin >> dash >> end && dash == '-') {
      is_here = begin <= address && address < end;
    }
    if (is_here && line.starts_with("VmFlags:")) return line.find(" hg") != std::string::npos;
  }
  return false;
}

bool system_has_huge_pages() {
  const auto modes = sconce::test::contents("/sys/kernel/mm/transparent_hugepage/enabled");
  return modes.find("[always]") != std::string::npos ||
         modes.find("[madvise]") != std::string::npos;
}

at::Tensor large() {
  return at::empty({4 << 20}, at::kByte);
}

std::string variable() {
  const char* value = std::getenv("THP_MEM_ALLOC_ENABLE");
  return value == nullptr ? "not set" : value;
}

}  // namespace

TEST_CASE("after tune_memory, freed memory is reused without requesting pages from the system") {
  const bool reuses_freed_memory = sconce::tune_memory().reuses_freed_memory;
  CHECK((reuses_freed_memory || !is_glibc));
  if (!reuses_freed_memory) SKIP("malloc is a sanitizer's");
  CHECK(pages_for_100_steps() < 1000);  // the blocks span 3,072,000 pages
}

TEST_CASE(
    "tune_memory in a new process enables huge pages for large tensors if the system supports them",
    "[alone]") {
  ::unsetenv("THP_MEM_ALLOC_ENABLE");
  const bool huge_pages = system_has_huge_pages();
  CHECK(sconce::tune_memory().huge_pages == huge_pages);
  CHECK(variable() == "not set");
  CHECK(is_marked(large()) == huge_pages);
  CHECK(sconce::tune_memory().huge_pages == huge_pages);  // a second call finds the same setting
}

TEST_CASE("tune_memory does not enable huge pages after the first tensor is created", "[alone]") {
  ::unsetenv("THP_MEM_ALLOC_ENABLE");
  CHECK(large().defined());
  const auto tuned = sconce::tune_memory();
  CHECK_FALSE(tuned.huge_pages);
  CHECK((tuned.reuses_freed_memory || !is_glibc));
  CHECK(variable() == "not set");
  CHECK_FALSE(is_marked(large()));
}

TEST_CASE("tune_memory leaves huge pages disabled if THP_MEM_ALLOC_ENABLE is 0", "[alone]") {
  ::setenv("THP_MEM_ALLOC_ENABLE", "0", 1);
  CHECK_FALSE(sconce::tune_memory().huge_pages);
  CHECK(variable() == "0");
  CHECK_FALSE(is_marked(large()));
}

TEST_CASE("tune_memory keeps THP_MEM_ALLOC_ENABLE if it is already 1", "[alone]") {
  ::setenv("THP_MEM_ALLOC_ENABLE", "1", 1);
  CHECK(sconce::tune_memory().huge_pages == system_has_huge_pages());
  CHECK(variable() == "1");
}

TEST_CASE("tune_memory reports no huge pages if the system disables them for the process",
          "[alone]") {
  ::unsetenv("THP_MEM_ALLOC_ENABLE");
  REQUIRE(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
  CHECK_FALSE(sconce::tune_memory().huge_pages);
  CHECK(variable() == "not set");
}
