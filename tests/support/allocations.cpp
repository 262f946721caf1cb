#include "support/allocations.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <malloc.h>

#include <cerrno>
#include <cstdlib>
#include <new>

using sconce::test::allocation_count;
using sconce::test::allocations;
using sconce::test::until_failure;

extern "C" void* __libc_malloc(size_t size);
extern "C" void* __libc_memalign(size_t alignment, size_t size);

namespace {

// LibTorch's Dict allocates its table in a noexcept constructor, so a failed allocation there would
// terminate the process. Instead, a test can fail the larger allocation that the reader makes
// immediately before allocating the table.
bool is_table_of_dict(size_t size) {
  using Place = ska_ordered::detailv3::sherwood_v3_entry<std::pair<c10::IValue, c10::IValue>>;
  return size == sizeof(Place) || size == 4 * sizeof(Place);
}

bool fails() {
  ++allocation_count;
  return until_failure >= 0 && until_failure-- == 0;
}

}  // namespace

void* operator new(size_t size) {
  if (!is_table_of_dict(size) && fails()) throw std::bad_alloc();
  void* memory = __libc_malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  const auto usable = static_cast<int64_t>(malloc_usable_size(memory) + sizeof(size_t));
  allocations.bytes += usable;
  const int64_t now = allocations.live += usable;
  for (int64_t most = allocations.peak;
       now > most && !allocations.peak.compare_exchange_weak(most, now);) {
  }
  return memory;
}

void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  allocations.live -= static_cast<int64_t>(malloc_usable_size(memory) + sizeof(size_t));
  std::free(memory);
}

void operator delete(void* memory, size_t) noexcept {
  operator delete(memory);
}

// The malloc function is also replaced, because C libraries such as libpng call malloc.
extern "C" void* malloc(size_t size) noexcept {
  if (!fails()) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}

// For tensors.
extern "C" int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  *memory = fails() ? nullptr : __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
