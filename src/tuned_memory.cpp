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
  constexpr int largest_block = 32 << 20;  // the maximum in 64-bit glibc
  return mallopt(M_MMAP_THRESHOLD, largest_block) == 1 &&
         mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max()) == 1;
}

// Returns whether the system provides huge pages if this process requests them.
bool system_allows_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;  // for example, "always [madvise] never"
  return std::getline(file, modes) && modes.find("[never]") == std::string::npos &&
         prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0;
}

int64_t page_bytes() {
  return sysconf(_SC_PAGESIZE);
}

bool is_page_aligned(const at::Tensor& tensor) {
  return reinterpret_cast<intptr_t>(tensor.const_data_ptr()) % page_bytes() == 0;
}

// With huge pages, LibTorch aligns blocks to pages. Without this alignment, at least one of two
// consecutive blocks does not start on a page boundary, because malloc stores a header before each
// block.
bool requests_huge_pages() {
  const auto first = at::empty({4 << 20}, at::kByte), second = at::empty_like(first);
  return is_page_aligned(first) && is_page_aligned(second);
}

// Counts the pages that the system maps for this thread while the thread fills a new block. The
// block is allocated with malloc instead of as a tensor, because glibc may skip a free block of
// exactly the right size when allocating aligned memory.
long block_page_faults() {
  constexpr size_t bytes = 1 << 20;  // by default, malloc unmaps freed blocks of this size
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

// Returns whether any of the next few blocks from malloc has pages that are already mapped. Several
// attempts are needed, because malloc may place the first blocks in other parts of the heap.
bool reuses_freed() {
  for (int i = 0; i < 8; ++i) {
    if (block_page_faults() < 2) return true;
  }
  return false;
}

}  // namespace

TunedMemory tune_memory() {
  const bool accepted = keep_freed();
  const bool may_have_huge = system_allows_huge_pages();
  const bool is_set = std::getenv(variable) != nullptr;
  if (may_have_huge && !is_set) ::setenv(variable, "1", /*overwrite=*/0);
  const bool huge_pages = requests_huge_pages() && may_have_huge;  // LibTorch reads the variable
  if (may_have_huge && !is_set) ::unsetenv(variable);
  return {.reuses_freed_memory = accepted && reuses_freed(), .huge_pages = huge_pages};
}

}  // namespace sconce
