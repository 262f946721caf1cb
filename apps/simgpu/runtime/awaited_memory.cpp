#include "simgpu/runtime/awaited_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "simgpu/runtime/memory.hpp"
#include "simgpu/runtime/place.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/races.hpp"
#include "simgpu/runtime/settings.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

constexpr uintptr_t page = 4096;

struct Guarded {
  Access memory = {};
  const Place* place = nullptr;  // where the copy was requested
};

// While this value is false, the fault handler can skip the lock.
std::atomic<bool> is_any_guarded = false;

std::vector<Guarded>& guarded() {
  static auto& all = *new std::vector<Guarded>;
  return all;
}

Access pages_of(const Access& memory) {
  const auto begin = reinterpret_cast<uintptr_t>(memory.data) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(memory.data) + memory.size;
  return {reinterpret_cast<const void*>(begin), (end - begin + page - 1) / page * page};
}

void set_rights(const Access& memory, int rights) {
  const auto pages = pages_of(memory);
  mprotect(const_cast<void*>(pages.data), pages.size, rights);
}

void report(const Guarded& used, bool is_write) {
  report_race_unthrown("simulated GPUs: the host " + std::string(is_write ? "writes" : "reads") +
                       " " + std::to_string(used.memory.size) + " bytes of pinned memory" +
                       at(requested_at()) + " before the copy to that memory" + at(used.place) +
                       " has finished; the host does not wait for the copy");
}

}  // namespace

void guard_awaited(const void* data, size_t size) {
  const auto* block = find_block(data);
  // Pages of registered memory may also contain other data.
  if (settings().races == RaceMode::off || block == nullptr || block->is_registered) return;
  guarded().push_back({{data, size}, requested_at()});
  is_any_guarded = true;
  set_rights({data, size}, PROT_NONE);
}

void release_awaited(const void* data, size_t size) {
  std::erase_if(guarded(), [&](const Guarded& each) {
    if (!overlap(each.memory, {data, size})) return false;
    set_rights(each.memory, PROT_READ | PROT_WRITE);  // all of it, as the rest is now unguarded
    return true;
  });
  is_any_guarded = !guarded().empty();
}

bool take_awaited_fault(const void* address, bool is_write) {
  if (!is_any_guarded) return false;
  note_place();
  const Lock lock;
  const Access touched{address, 1};
  const auto shares_page = [&](const Guarded& each) {
    return overlap(pages_of(each.memory), touched);
  };
  const auto any = std::find_if(guarded().begin(), guarded().end(), shares_page);
  if (any == guarded().end()) return false;
  const auto used = std::find_if(guarded().begin(), guarded().end(), [&](const Guarded& each) {
    return overlap(each.memory, touched);
  });
  if (used != guarded().end()) report(*used, is_write);
  const Access pages = pages_of(any->memory);
  release_awaited(pages.data, pages.size);
  return true;
}

}  // namespace simgpu
