#include "simgpu/runtime/event.hpp"

#include <chrono>

#include "simgpu/runtime/host_clock.hpp"
#include "simgpu/runtime/pinned_sources.hpp"

namespace simgpu {

void record_event(Event& event, Stream& stream) {
  catch_up(stream);
  event.stream = &stream;
  event.tick = stream.tick;
  event.seen = stream.seen;
  event.queries = 0;
  event.time_ns = std::chrono::steady_clock::now().time_since_epoch().count();
}

void order_after(Stream& stream, const Event& event) {
  if (event.stream != nullptr) order_after(stream, *event.stream, event.tick, event.seen);
}

bool is_waiting_for_thread(const Event& event) {
  return event.stream != nullptr && find_unready(*event.stream, event.tick).valid();
}

void wait_for_threads(const Event& event) {
  wait_until_ready([&] {
    return event.stream == nullptr ? std::shared_future<void>()
                                   : find_unready(*event.stream, event.tick);
  });
}

void wait_on_host(const Event& event) {
  if (event.stream == nullptr) return;
  drain(*event.stream, event.tick);
  join_host_clock(event.seen);
  check_sources(event.seen);
}

}  // namespace simgpu
