#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "simgpu/runtime/clock.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

struct Capture;

struct Stream;

/// What a stream has been given and has not done: a late copy, a wait for another stream, or one
/// for another thread.
struct Pending {
  uint64_t tick = 0;
  std::function<void()> copy = {};
  std::array<Access, 2> accesses = {};  ///< of the copy
  Stream* awaited = nullptr;
  uint64_t awaited_tick = 0;
  std::shared_future<void> done = {};
};

/// A stream of a GPU. Streams live as long as the process, since races name them.
struct Stream {
  int device = 0;
  bool is_default = false;
  bool is_blocking = false;  ///< waits for the default stream, and the default stream for it
  int priority = 0;
  size_t id = 0;      ///< in clocks; 0 until the first work
  int number = 0;     ///< in reports: counts the device's streams by their first work
  uint64_t tick = 0;  ///< of the latest piece of work, or the wait for another stream after it
  Clock seen = {};    ///< what comes before the next piece of work
  std::deque<Pending> pending = {};
  std::shared_ptr<Capture> capture = {};
  int queries = 0;  ///< that found it unfinished
};

/// Returns the stream of a handle: the legacy default stream of the device for CUDA's special
/// handles.
Stream& find_stream(cudaStream_t handle, int device);

/// Does so for the calling thread's device.
Stream& find_stream(cudaStream_t handle);

/// Whether the handle is null, one of CUDA's special handles, or a stream's. Takes the lock.
bool is_stream(cudaStream_t handle);

/// Makes a stream of the current device.
cudaStream_t create_stream(unsigned flags, int priority);

/// Returns the streams that have had work, by their ids; nullptr for id 0.
const std::vector<Stream*>& used_streams();

/// "stream 2 of cuda:0".
std::string describe(const Stream& stream);

/// Gives the stream its place in clocks.
void use(Stream& stream);

/// Lets the next work come after all that the calling thread has waited for, and after the default
/// stream where CUDA says so.
void catch_up(Stream& stream);

/// Begins a piece of work: it comes after all that the stream has caught up with.
void advance(Stream& stream);

/// Does the pending work of the stream, up to a piece of it.
void drain(Stream& stream, uint64_t up_to = UINT64_MAX);

/// Whether something up to a piece of the stream's work is pending.
bool is_pending(const Stream& stream, uint64_t up_to = UINT64_MAX);

/// Waits until nothing that is pending on the stream, or on all streams, waits
/// for another thread. Called without the lock before whatever drains the streams: the other
/// thread, and those that watch it, need the lock.
void wait_for_threads(cudaStream_t stream);
void wait_for_threads_of_all_streams();

/// Returns the first thing up to a piece of the stream's work that another thread does and has not
/// done, or an invalid future.
std::shared_future<void> find_unready(const Stream& stream, uint64_t up_to = UINT64_MAX);

/// Waits until `find` finds nothing that another thread has not done.
void wait_until_ready(const std::function<std::shared_future<void>()>& find);

/// Lets the later work of a stream wait for a point of another.
void order_after(Stream& later, Stream& earlier, uint64_t tick, const Clock& seen);

/// Waits on the host for all work of the stream.
void wait_on_host(Stream& stream);

}  // namespace simgpu
