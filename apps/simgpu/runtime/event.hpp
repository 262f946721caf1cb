#pragma once

#include <cstdint>
#include <memory>

#include "simgpu/runtime/clock.hpp"
#include "simgpu/runtime/stream.hpp"

namespace simgpu {

/// A point in a stream that other streams or the host can wait for.
struct Event {
  int device = 0;
  bool has_timing = true;
  Stream* stream = nullptr;  ///< null until the event is recorded
  uint64_t tick = 0;
  Clock seen = {};
  std::shared_ptr<Capture> capture = {};  ///< the stream in which the event was recorded
  int64_t time_ns = 0;
  int queries = 0;
};

/// Records the event at the current end of the stream's work.
void record_event(Event& event, Stream& stream);

/// Makes later work of the stream wait for a recorded event.
void order_after(Stream& stream, const Event& event);

/// Returns whether the event depends on unfinished work in another thread.
bool is_waiting_for_thread(const Event& event);

/// Waits until the event no longer depends on unfinished work in another thread. Call this function
/// without holding the lock, before `wait_on_host`.
void wait_for_threads(const Event& event);

/// Makes the host wait for the event.
void wait_on_host(const Event& event);

}  // namespace simgpu
