#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "simgpu/runtime/host_clock.hpp"

// Replaces the C library functions that synchronize a program's threads. If a thread has waited for
// work on a GPU, other threads know that the work is finished only after they have synchronized
// with that thread.

namespace simgpu {

namespace {

// Returns the function that is hidden by this library's own definition.
template <class Function>
Function find_next(std::atomic<Function>& next, const char* name) {
  if (next == nullptr) next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  return next;
}

// The start function of a new thread, and the function's argument. The creating thread shares its
// clock with the new thread through the address of this struct.
struct Start {
  void* (*function)(void*) = nullptr;
  void* argument = nullptr;
};

const void* object_of(pthread_t thread) {
  return reinterpret_cast<const void*>(thread);
}

void end_thread(void*) {
  leave_host_clock(object_of(pthread_self()));
}

// This key has a value in each thread that was started here, so that `end_thread` runs when the
// thread ends.
pthread_key_t end_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    pthread_key_create(&made, end_thread);
    return made;
  }();
  return key;
}

void* run_thread(void* argument) {
  const auto start = *static_cast<Start*>(argument);
  exchange_host_clock(argument);
  delete static_cast<Start*>(argument);
  static constexpr char begun = 0;
  pthread_setspecific(end_key(), &begun);
  return start.function(start.argument);
}

int after(int result, const void* object) {
  if (result == 0) exchange_host_clock(object);
  return result;
}

}  // namespace

}  // namespace simgpu

// Defines a function that acquires or waits for an object, and a function that releases it.
#define SIMGPU_ACQUIRES(function, type)                                       \
  int function(type* object) {                                                \
    static std::atomic<int (*)(type*)> next;                                  \
    return simgpu::after(simgpu::find_next(next, #function)(object), object); \
  }
#define SIMGPU_RELEASES(function, type)                \
  int function(type* object) {                         \
    static std::atomic<int (*)(type*)> next;           \
    simgpu::exchange_host_clock(object);               \
    return simgpu::find_next(next, #function)(object); \
  }

#pragma GCC visibility push(default)

extern "C" {

// A thread that waits on a condition variable holds the mutex when the wait ends, and unlocks the
// mutex later.
SIMGPU_ACQUIRES(pthread_mutex_lock, pthread_mutex_t)
SIMGPU_ACQUIRES(pthread_mutex_trylock, pthread_mutex_t)
SIMGPU_RELEASES(pthread_mutex_unlock, pthread_mutex_t)
SIMGPU_ACQUIRES(pthread_rwlock_rdlock, pthread_rwlock_t)
SIMGPU_ACQUIRES(pthread_rwlock_tryrdlock, pthread_rwlock_t)
SIMGPU_ACQUIRES(pthread_rwlock_wrlock, pthread_rwlock_t)
SIMGPU_ACQUIRES(pthread_rwlock_trywrlock, pthread_rwlock_t)
SIMGPU_RELEASES(pthread_rwlock_unlock, pthread_rwlock_t)
SIMGPU_ACQUIRES(sem_wait, sem_t)
SIMGPU_ACQUIRES(sem_trywait, sem_t)
SIMGPU_RELEASES(sem_post, sem_t)

int sem_timedwait(sem_t* object, const timespec* until) {
  static std::atomic<int (*)(sem_t*, const timespec*)> next;
  return simgpu::after(simgpu::find_next(next, "sem_timedwait")(object, until), object);
}

int sem_clockwait(sem_t* object, clockid_t clock, const timespec* until) {
  static std::atomic<int (*)(sem_t*, clockid_t, const timespec*)> next;
  return simgpu::after(simgpu::find_next(next, "sem_clockwait")(object, clock, until), object);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static std::atomic<Create> next;
  auto* start = new (std::nothrow) simgpu::Start{.function = function, .argument = argument};
  if (start == nullptr) return EAGAIN;
  simgpu::exchange_host_clock(start);
  const int result =
      simgpu::find_next(next, "pthread_create")(thread, attributes, simgpu::run_thread, start);
  if (result != 0) delete start;
  return result;
}

int pthread_join(pthread_t thread, void** value) {
  static std::atomic<int (*)(pthread_t, void**)> next;
  const int result = simgpu::find_next(next, "pthread_join")(thread, value);
  return simgpu::after(result, simgpu::object_of(thread));
}

}  // extern "C"

#pragma GCC visibility pop

#undef SIMGPU_ACQUIRES
#undef SIMGPU_RELEASES
