#pragma once

#include <cstdint>
#include <memory>

#include "simgpu/runtime/clock.hpp"
#include "simgpu/runtime/stream.hpp"

namespace simgpu {

/// A point in a stream that others wait for.
struct Event {
  int device = 0;
  bool has_timing = true;
  Stream* stream = nullptr;  ///< null until it is recorded
  uint64_t tick = 0;
  Clock seen = {};
  std::shared_ptr<Capture> capture = {};  ///< that it was recorded in
  int64_t time_ns = 0;
  int queries = 0;
};

/// Lets the event be the present end of the stream's work.
void record_event(Event& event, Stream& stream);

/// Lets the later work of the stream wait for an event that is recorded.
void order_after(Stream& stream, const Event& event);

/// Whether the event waits for another thread.
bool is_waiting_for_thread(const Event& event);

/// Waits until the event waits for no other thread. Called without the lock before `wait_on_host`.
void wait_for_threads(const Event& event);

/// Waits on the host for the event.
void wait_on_host(const Event& event);

}  // namespace simgpu
