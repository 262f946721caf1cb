#include "sconce/tuned_memory.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

namespace sconce {
namespace {

constexpr auto variable = "THP_MEM_ALLOC_ENABLE";

bool keep_freed() {
  constexpr int largest_block = 32 << 20;  // the highest that glibc accepts on 64 bits
  return mallopt(M_MMAP_THRESHOLD, largest_block) == 1 &&
         mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max()) == 1;
}

// Whether the system gives this process huge pages if it asks for them.
bool system_allows_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;  // such as "always [madvise] never"
  return std::getline(file, modes) && modes.find("[never]") == std::string::npos &&
         prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0;
}

int64_t page_bytes() {
  return sysconf(_SC_PAGESIZE);
}

bool begins_a_page(const at::Tensor& tensor) {
  return reinterpret_cast<intptr_t>(tensor.const_data_ptr()) % page_bytes() == 0;
}

// LibTorch aligns what it asks huge pages for to pages. Without, malloc's own header begins a page,
// or the second of two blocks in a row is not where a page begins.
bool asks_for_huge_pages() {
  const auto first = at::empty({4 << 20}, at::kByte), second = at::empty_like(first);
  return begins_a_page(first) && begins_a_page(second);
}

// The pages that the system gives to this thread while it fills a new block. The block is malloc's,
// not a tensor: for an aligned block glibc may pass over a free one that just fits.
long pages_for_a_block() {
  constexpr size_t bytes = 1 << 20;  // by default each block of this size goes back when freed
  const auto pages = [] {
    rusage usage = {};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
  };
  const long before = pages();
  const std::unique_ptr<volatile char[]> block(new volatile char[bytes]);
  const auto page = static_cast<size_t>(page_bytes());
  for (size_t i = 0; i < bytes; i += page) block[i] = 1;
  return pages() - before;
}

// Whether a block is soon one that has its pages already. The first ones may lie in different
// places.
bool reuses_freed() {
  for (int i = 0; i < 8; ++i) {
    if (pages_for_a_block() < 2) return true;
  }
  return false;
}

}  // namespace

TunedMemory tune_memory() {
  const bool accepted = keep_freed();
  const bool may_have_huge = system_allows_huge_pages();
  const bool is_set = std::getenv(variable) != nullptr;
  if (may_have_huge && !is_set) ::setenv(variable, "1", /*overwrite=*/0);
  const bool huge_pages = asks_for_huge_pages() && may_have_huge;  // LibTorch reads the variable
  if (may_have_huge && !is_set) ::unsetenv(variable);
  return {.reuses_freed_memory = accepted && reuses_freed(), .huge_pages = huge_pages};
}

}  // namespace sconce
