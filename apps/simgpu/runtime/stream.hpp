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

/// An unfinished task in a stream: a delayed copy, a wait for another stream, or a wait for another
/// thread.
struct Pending {
  uint64_t tick = 0;
  std::function<void()> copy = {};
  std::array<Access, 2> accesses = {};  ///< by the copy
  Stream* awaited = nullptr;
  uint64_t awaited_tick = 0;
  std::shared_future<void> done = {};
};

/// A stream on a GPU. Streams exist until the process ends, because race reports refer to them.
struct Stream {
  int device = 0;
  bool is_default = false;
  bool is_blocking = false;  ///< synchronizes with the default stream
  int priority = 0;
  size_t id = 0;      ///< its id in clocks; 0 until its first work
  int number = 0;     ///< its number in reports, in order of first use on the device
  uint64_t tick = 0;  ///< of the latest work, or of a later wait for another stream
  Clock seen = {};    ///< everything that precedes the next piece of work
  std::deque<Pending> pending = {};
  std::shared_ptr<Capture> capture = {};
  int queries = 0;  ///< number of queries that reported unfinished work
};

/// Returns the stream for a handle. CUDA's special handles refer to the legacy default stream of
/// the device.
Stream& find_stream(cudaStream_t handle, int device);

/// Returns the stream for a handle on the calling thread's device.
Stream& find_stream(cudaStream_t handle);

/// Returns whether the handle is null, one of CUDA's special handles, or the handle of a stream.
/// Acquires the lock.
bool is_stream(cudaStream_t handle);

/// Creates a stream on the current device.
cudaStream_t create_stream(unsigned flags, int priority);

/// Returns the streams that have had work, indexed by id. The entry for id 0 is nullptr.
const std::vector<Stream*>& used_streams();

/// Returns a description such as "stream 2 of cuda:0".
std::string describe(const Stream& stream);

/// Assigns the stream an id for use in clocks.
void use(Stream& stream);

/// Orders the next work after everything that the calling thread has waited for and, where CUDA
/// requires it, after the default stream.
void catch_up(Stream& stream);

/// Begins a piece of work that comes after everything the stream is ordered after.
void advance(Stream& stream);

/// Runs the stream's pending tasks up to a given piece of work.
void drain(Stream& stream, uint64_t up_to = UINT64_MAX);

/// Returns whether the stream has any pending tasks up to a given piece of its work.
bool is_pending(const Stream& stream, uint64_t up_to = UINT64_MAX);

/// Waits until no pending task on the stream, or on any stream, is waiting for another thread.
/// Called without holding the lock before any operation that drains the streams, because the other
/// thread and the threads that monitor it need the lock.
void wait_for_threads(cudaStream_t stream);
void wait_for_threads_of_all_streams();

/// Returns the first unfinished task of another thread up to a given piece of the stream's work, or
/// an invalid future if there is none.
std::shared_future<void> find_unready(const Stream& stream, uint64_t up_to = UINT64_MAX);

/// Waits until `find` finds no unfinished tasks in other threads.
void wait_until_ready(const std::function<std::shared_future<void>()>& find);

/// Makes later work in a stream wait for a point in another stream.
void order_after(Stream& later, Stream& earlier, uint64_t tick, const Clock& seen);

/// Makes the host wait for all work in the stream.
void wait_on_host(Stream& stream);

}  // namespace simgpu
