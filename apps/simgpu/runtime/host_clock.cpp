#include "simgpu/runtime/host_clock.hpp"

#include <sched.h>

#include <array>
#include <atomic>
#include <utility>

// Avoids a function call to locate the variable, because every mutex operation accesses the
// variable.
#define SIMGPU_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) thread_local

namespace simgpu {

namespace {

// An immutable clock. All threads and objects that know about the same finished work share one
// clock.
struct SharedClock {
  Clock clock = {};
  int references = 0;
};

// Every mutex operation in the process calls this function. Usually, there is nothing to exchange,
// and the function returns without taking a lock or writing to memory. Several objects may share a
// slot. As a result, a thread's clock may include more work from other threads than it should, but
// never less.
std::array<std::atomic<SharedClock*>, 4096> places;

std::atomic_flag is_exchanging = ATOMIC_FLAG_INIT;

// While exchanges are blocked, the process's allocator or other fork handlers may lock a mutex.
SIMGPU_THREAD_LOCAL bool is_inside = false;

SIMGPU_THREAD_LOCAL SharedClock* own_clock = nullptr;

class Exchange {
 public:
  Exchange() { hold_exchanges(); }
  ~Exchange() { release_exchanges(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
};

void release(SharedClock* clock) {
  if (clock != nullptr && --clock->references == 0) delete clock;
}

SharedClock* join(SharedClock* a, SharedClock* b) {
  if (b == nullptr || (a != nullptr && a->clock.includes(b->clock))) return a;
  if (a == nullptr || b->clock.includes(a->clock)) return b;
  auto* joined = new SharedClock{.clock = a->clock};
  joined->clock.join(b->clock);
  return joined;
}

std::atomic<SharedClock*>& place_of(const void* object) {
  const auto mixed = reinterpret_cast<uintptr_t>(object) * 0x9E3779B97F4A7C15U;
  return places[(mixed >> 32) % places.size()];
}

}  // namespace

const Clock& host_clock() {
  static const auto& nothing = *new Clock;
  return own_clock != nullptr ? own_clock->clock : nothing;
}

void join_host_clock(const Clock& done) {
  if (host_clock().includes(done)) return;
  const Exchange exchange;
  auto* joined = new SharedClock{.clock = host_clock(), .references = 1};
  joined->clock.join(done);
  release(own_clock);
  own_clock = joined;
}

void exchange_host_clock(const void* object) {
  auto& place = place_of(object);
  if (place.load(std::memory_order_acquire) == own_clock || is_inside) return;
  const Exchange exchange;
  auto* former = place.load(std::memory_order_relaxed);
  auto* joined = join(own_clock, former);
  if (joined == nullptr) return;
  joined->references += 2;
  release(own_clock);
  release(former);
  own_clock = joined;
  place.store(joined, std::memory_order_release);
}

void leave_host_clock(const void* object) {
  exchange_host_clock(object);
  if (own_clock == nullptr) return;
  const Exchange exchange;
  release(std::exchange(own_clock, nullptr));
}

void hold_exchanges() {
  is_inside = true;
  while (is_exchanging.test_and_set(std::memory_order_acquire)) sched_yield();
}

void release_exchanges() {
  is_exchanging.clear(std::memory_order_release);
  is_inside = false;
}

}  // namespace simgpu

#undef SIMGPU_THREAD_LOCAL
