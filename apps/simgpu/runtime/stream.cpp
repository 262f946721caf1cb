#include "simgpu/runtime/stream.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <unordered_set>
#include <utility>

#include "simgpu/runtime/capture.hpp"
#include "simgpu/runtime/devices.hpp"
#include "simgpu/runtime/host_clock.hpp"
#include "simgpu/runtime/pinned_sources.hpp"
#include "simgpu/runtime/process.hpp"

namespace simgpu {

namespace {

struct Streams {
  std::map<int, Stream> defaults = {};
  std::deque<Stream> others = {};
  std::unordered_set<const void*> handles = {};  ///< for the others
  std::vector<Stream*> used = {nullptr};
  std::map<int, int> numbers = {};
  std::atomic<bool> wait_for_threads = false;
};

Streams& streams() {
  static auto* all = new Streams;
  return *all;
}

Stream& default_stream(int device) {
  auto [found, is_new] = streams().defaults.try_emplace(device);
  if (is_new) {
    found->second.device = device;
    found->second.is_default = true;
  }
  return found->second;
}

bool names_default_stream(cudaStream_t handle) {
  return handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
}

void order_after_end(Stream& later, Stream& earlier) {
  if (earlier.id != 0) order_after(later, earlier, earlier.tick, earlier.seen);
}

// The legacy default stream and blocking streams synchronize with each other.
void order_by_default_stream(Stream& stream) {
  if (stream.is_blocking) order_after_end(stream, default_stream(stream.device));
  if (!stream.is_default) return;
  for (auto* other : used_streams()) {
    if (other != nullptr && other->is_blocking && other->device == stream.device) {
      order_after_end(stream, *other);
    }
  }
}

}  // namespace

Stream& find_stream(cudaStream_t handle, int device) {
  if (names_default_stream(handle)) return default_stream(device);
  return *reinterpret_cast<Stream*>(handle);
}

Stream& find_stream(cudaStream_t handle) {
  return find_stream(handle, current_device());
}

bool is_stream(cudaStream_t handle) {
  const Lock lock;
  return names_default_stream(handle) || streams().handles.contains(handle);
}

cudaStream_t create_stream(unsigned flags, int priority) {
  auto& stream = streams().others.emplace_back();
  stream.device = current_device();
  stream.is_blocking = (flags & cudaStreamNonBlocking) == 0;
  stream.priority = priority;
  streams().handles.insert(&stream);
  make_context(stream.device);
  return reinterpret_cast<cudaStream_t>(&stream);
}

const std::vector<Stream*>& used_streams() {
  return streams().used;
}

std::string describe(const Stream& stream) {
  const auto name =
      stream.is_default ? "the default stream" : "stream " + std::to_string(stream.number);
  return name + " of cuda:" + std::to_string(stream.device);
}

void use(Stream& stream) {
  if (stream.id != 0) return;
  stream.id = streams().used.size();
  if (!stream.is_default) stream.number = ++streams().numbers[stream.device];
  streams().used.push_back(&stream);
  make_context(stream.device);
}

void catch_up(Stream& stream) {
  use(stream);
  stream.seen.join(host_clock());
  order_by_default_stream(stream);
}

void advance(Stream& stream) {
  catch_up(stream);
  stream.seen.set(stream.id, ++stream.tick);
}

void drain(Stream& stream, uint64_t up_to) {
  while (is_pending(stream, up_to)) {
    const auto next = std::move(stream.pending.front());
    stream.pending.pop_front();
    if (next.copy) {
      hide_captured(next.accesses);
      next.copy();
    }
    if (next.awaited != nullptr) drain(*next.awaited, next.awaited_tick);
    if (next.done.valid()) next.done.wait();
  }
}

bool is_pending(const Stream& stream, uint64_t up_to) {
  return !stream.pending.empty() && stream.pending.front().tick <= up_to;
}

std::shared_future<void> find_unready(const Stream& stream, uint64_t up_to) {
  for (const auto& pending : stream.pending) {
    if (pending.tick > up_to) break;
    const auto& done = pending.done;
    if (done.valid() && done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      return done;
    }
    if (pending.awaited == nullptr) continue;
    if (auto found = find_unready(*pending.awaited, pending.awaited_tick); found.valid()) {
      return found;
    }
  }
  return {};
}

void wait_until_ready(const std::function<std::shared_future<void>()>& find) {
  if (!streams().wait_for_threads) return;
  while (true) {
    std::shared_future<void> done;
    {
      const Lock lock;
      done = find();
    }
    if (!done.valid()) return;
    done.wait();
  }
}

void wait_for_threads(cudaStream_t handle) {
  wait_until_ready([&] { return find_unready(find_stream(handle)); });
}

void wait_for_threads_of_all_streams() {
  wait_until_ready([] {
    std::shared_future<void> found;
    for (const auto* stream : used_streams()) {
      if (stream != nullptr && !found.valid()) found = find_unready(*stream);
    }
    return found;
  });
}

void stream_wait(cudaStream_t handle, std::shared_future<void> done) {
  const Lock lock;
  auto& stream = find_stream(handle);
  use(stream);
  stream.pending.push_back({.tick = stream.tick, .done = std::move(done)});
  streams().wait_for_threads = true;
}

void order_after(Stream& later, Stream& earlier, uint64_t tick, const Clock& seen) {
  use(later);
  later.seen.join(seen);
  if (&later == &earlier || !is_pending(earlier, tick)) return;
  later.pending.push_back({.tick = ++later.tick, .awaited = &earlier, .awaited_tick = tick});
}

void wait_on_host(Stream& stream) {
  drain(stream);
  join_host_clock(stream.seen);
  check_sources(stream.seen);
}

}  // namespace simgpu
