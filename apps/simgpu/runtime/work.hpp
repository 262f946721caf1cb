#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <future>
#include <string>
#include <vector>

// Exported for the kernels, which are in a separate library.
#pragma GCC visibility push(default)

// The part of the simulated CUDA runtime that the kernels use.
namespace simgpu {

/// Contiguous memory that a piece of work reads or writes, identified by the address visible to the
/// user.
struct Access {
  const void* data = nullptr;
  size_t size = 0;
  bool writes = false;
  size_t rows = 1;  ///< number of such rows in the view that contains this one
};

/// Returns whether the two memory ranges overlap.
inline bool overlap(const Access& a, const Access& b) {
  const auto* a_begin = static_cast<const char*>(a.data);
  const auto* b_begin = static_cast<const char*>(b.data);
  return a_begin < b_begin + b.size && b_begin < a_begin + a.size;
}

/// A piece of work for a stream.
struct Work {
  /// The name in reports, such as "aten::add.Tensor". Must remain valid until the process ends.
  const char* label = "";
  std::vector<Access> accesses = {};
  /// Does the work. A graph stores this function and calls it in each replay. May be empty outside
  /// a capture.
  std::function<void()> run = {};
  /// Whether this piece continues the previous piece of work, which has already been counted.
  bool is_continued = false;
};

/// Returns the number of GPUs that are visible to the process.
int num_gpus();

/// Returns the address at which the library itself accesses the memory at `data`, because GPU
/// memory has no access rights at its own address. Returns `data` itself for any other memory.
void* host_address(const void* data);

/// Returns whether the stream is part of a capture.
bool is_capturing(cudaStream_t stream);

/// Called immediately before the calling thread runs work on a stream. Finishes the copies that are
/// queued on the stream, and checks the accesses against those of other streams. In a capture,
/// instead saves the contents that the work is going to overwrite, so that uncaptured work can see
/// them.
/// @throw std::runtime_error for a race, if races are configured to throw.
void begin_work(cudaStream_t stream, const Work& work);

/// If the stream is part of a capture, stores the work for replays.
void record(cudaStream_t stream, Work work);

/// Adds work to the stream. The work only takes time. Earlier copies remain delayed. In a capture,
/// the work is stored for replays.
void take_time(cudaStream_t stream, const char* label);

/// Makes the stream wait for another thread, such as a thread that exchanges data with other
/// processes, in the same way that cudaStreamWaitEvent makes it wait for an event. Returns
/// immediately. Until `done` is ready, neither the stream nor any event recorded after this call is
/// ready. A thread that waits for the stream, or that begins the stream's next work, holds no lock
/// needed to query an event or a stream during the wait.
void stream_wait(cudaStream_t stream, std::shared_future<void> done);

/// Waits for the stream, because the host is about to read the stream's results. If the stream is
/// part of a capture, invalidates the capture and returns false.
bool wait_for_host(cudaStream_t stream);

/// Reports a race or a similar mistake by writing the text to standard error once. If races are
/// configured to throw, also throws the text. The process then exits with code 1 instead of 0.
/// @throw std::runtime_error if races are configured to throw.
void report_race(const std::string& text);

/// Returns whether the process counts its requests to GPUs.
bool is_counting();

/// Begins a named range for counting.
void begin_range(const char* name);

/// Ends the most recently begun range with this name.
void end_range(const char* name);

/// Records that memory, which LibTorch's allocator had assigned to a stream, was returned to the
/// allocator. Work that reuses the memory must come after all work that currently uses it. Strict
/// mode does not wait until the memory is reused. It immediately reports work on other streams that
/// may still be using the memory, and fills the memory with 0xFF. This function does not throw,
/// because destructors free memory. Instead, the next call to `begin_work` in any thread throws. A
/// graph may continue to use memory from the program's own pool, because nothing else can be
/// assigned that memory.
void on_freed(const void* data, size_t size, cudaStream_t stream, bool is_of_pool);

}  // namespace simgpu

#pragma GCC visibility pop
