#include "simgpu/runtime/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "simgpu/runtime/fault_handler.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/settings.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

constexpr size_t granularity = size_t{2} << 20;

struct Memory {
  std::map<uintptr_t, Block> blocks = {};
  std::map<int, size_t> used = {};
  uintptr_t next = gpu_addresses;
};

Memory& memory() {
  static auto* all = new Memory;
  return *all;
}

void* at_address(uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

size_t mapped_size(const Block& block) {
  const size_t unit = block.device == pinned ? 4096 : granularity;
  return (std::max<size_t>(block.size, 1) + unit - 1) / unit * unit;
}

bool map_at(uintptr_t address, size_t size, int rights, int file) {
  return mmap(at_address(address), size, rights, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0) ==
         at_address(address);
}

// Maps the file at both addresses. An address is reused only after all other addresses have been
// used, so that a stale pointer rarely points to new memory.
uintptr_t map_twice(int file, size_t size) {
  auto& next = memory().next;
  for (size_t tried = 0; tried < address_space; tried += size + granularity) {
    if (next + size > gpu_addresses + address_space) next = gpu_addresses;
    const auto address = next;
    next += size + granularity;
    if (!map_at(address, size, PROT_NONE, file)) continue;
    if (map_at(address + (host_addresses - gpu_addresses), size, PROT_READ | PROT_WRITE, file)) {
      return address;
    }
    munmap(at_address(address), size);
  }
  return 0;
}

uintptr_t map_gpu_memory(size_t size) {
  const int file = memfd_create("simulated GPU", MFD_CLOEXEC);
  if (file < 0) return 0;
  const auto address = ftruncate(file, static_cast<off_t>(size)) == 0 ? map_twice(file, size) : 0;
  close(file);
  return address;
}

}  // namespace

void* host_address(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return at_address(is_gpu_address(data) ? address + (host_addresses - gpu_addresses) : address);
}

Block* find_block(const void* data) {
  auto& blocks = memory().blocks;
  const auto address = reinterpret_cast<uintptr_t>(data);
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return nullptr;
  auto& block = std::prev(after)->second;
  return address - block.begin < std::max<size_t>(block.size, 1) ? &block : nullptr;
}

bool is_accessible(const void* data, size_t size) {
  const auto* block = find_block(data);
  const auto begin = reinterpret_cast<uintptr_t>(data);
  if (size > UINTPTR_MAX - begin) return false;
  if (block == nullptr) return size == 0 || (data != nullptr && !is_gpu_address(data));
  const auto offset = begin - block->begin;
  return block->device == pinned || size <= block->size - offset;
}

cudaError_t allocate_gpu_memory(void** data, size_t size, int device, bool is_of_capture) {
  auto& used = memory().used[device];
  if (size > settings().memory - used) return fail(cudaErrorMemoryAllocation);
  Block block{.size = size, .device = device, .is_of_capture = is_of_capture};
  block.begin = map_gpu_memory(mapped_size(block));
  if (block.begin == 0) return fail(cudaErrorMemoryAllocation);
  watch_block(block.begin, size, device);
  memory().blocks[block.begin] = block;
  used += size;
  *data = at_address(block.begin);
  std::memset(host_address(*data), 0xFF, size);
  return cudaSuccess;
}

cudaError_t allocate_pinned_memory(void** data, size_t size) {
  Block block{.size = size};
  void* mapped =
      mmap(nullptr, mapped_size(block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return fail(cudaErrorMemoryAllocation);
  block.begin = reinterpret_cast<uintptr_t>(mapped);
  memory().blocks[block.begin] = block;
  *data = mapped;
  return cudaSuccess;
}

cudaError_t register_memory(void* data, size_t size) {
  const bool is_memory = data != nullptr && size > 0 && is_accessible(data, size);
  if (!is_memory || is_gpu_address(data)) return fail(cudaErrorInvalidValue);
  if (find_block(data) != nullptr) return fail(cudaErrorHostMemoryAlreadyRegistered);
  const auto begin = reinterpret_cast<uintptr_t>(data);
  memory().blocks[begin] = {.begin = begin, .size = size, .is_registered = true};
  return cudaSuccess;
}

void free_block(Block* block) {
  const Block freed = *block;
  memory().blocks.erase(freed.begin);
  if (freed.device != pinned) {
    memory().used[freed.device] -= freed.size;
    forget_block(freed.begin);
    munmap(at_address(freed.begin), mapped_size(freed));
    munmap(host_address(at_address(freed.begin)), mapped_size(freed));
  } else if (!freed.is_registered) {
    munmap(at_address(freed.begin), mapped_size(freed));
  }
}

size_t used_memory(int device) {
  return memory().used[device];
}

}  // namespace simgpu
