#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "catch.hpp"

// Counts the memory that a program allocates, and makes individual allocations fail. Both features
// rely on allocations.cpp, which replaces operator new and malloc. Only programs that are linked
// with allocations.cpp can use this header.
namespace sconce::test {

struct Allocations {
  std::atomic<int64_t> live = 0;   ///< bytes from `new` that are in use
  std::atomic<int64_t> peak = 0;   ///< the peak value of `live` so far
  std::atomic<int64_t> bytes = 0;  ///< all bytes from `new` so far, including freed bytes
};
inline Allocations allocations;

/// The number of this thread's allocations so far, and how many more succeed before one fails. If
/// the second number is negative, no allocations fail.
inline thread_local int64_t allocation_count = 0;
inline thread_local int64_t until_failure = -1;

/// Returns the peak amount of memory that the function uses, not counting memory that was already
/// in use.
template <class F>
int64_t peak_of(const F& function) {
  const int64_t before = allocations.live;
  allocations.peak = before;
  function();
  return allocations.peak - before;
}

/// Returns the total number of bytes that the function allocates, including memory that it frees.
/// Unlike an elapsed time, this number is the same in every run.
template <class F>
int64_t bytes_of(const F& function) {
  const int64_t before = allocations.bytes;
  function();
  return allocations.bytes - before;
}

/// Makes each allocation in the function fail, one at a time. Each time, the function must either
/// throw or work without the memory. `check` is called after each call.
template <class F, class Check>
void fail_each_allocation(const F& function, const Check& check) {
  function();  // triggers one-time allocations
  allocation_count = 0;
  function();
  const int64_t count = allocation_count;
  REQUIRE(count > 5);
  int64_t thrown = 0;
  for (int64_t i = 0; i < count; ++i) {
    until_failure = i;
    try {
      function();
    } catch (const std::exception&) {
      ++thrown;
    }
    until_failure = -1;
    check();
  }
  CHECK(thrown > count / 2);
  function();
}

template <class F>
void fail_each_allocation(const F& function) {
  fail_each_allocation(function, [] {});
}

}  // namespace sconce::test
