#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <future>
#include <string>
#include <vector>

// Exported for the kernels, which are in a separate library.
#pragma GCC visibility push(default)

// The functions of the simulated CUDA runtime that the kernels use.
namespace simgpu {

/// Contiguous memory that a piece of work reads or writes, identified by the address that the user
/// knows.
struct Access {
  const void* data = nullptr;
  size_t size = 0;
  bool writes = false;
  size_t rows = 1;  ///< number of such rows in the view that this one belongs to
};

/// Returns whether the two overlap.
inline bool overlap(const Access& a, const Access& b) {
  const auto* a_begin = static_cast<const char*>(a.data);
  const auto* b_begin = static_cast<const char*>(b.data);
  return a_begin < b_begin + b.size && b_begin < a_begin + a.size;
}

/// A piece of work for a stream.
struct Work {
  /// The name in reports, such as "aten::add.Tensor". Must stay valid until the process ends.
  const char* label = "";
  std::vector<Access> accesses = {};
  /// Does the work. A graph keeps this function and calls it in each replay. May be empty outside a
  /// capture.
  std::function<void()> run = {};
  /// Whether it continues the previous piece of work, which is already counted.
  bool is_continued = false;
};

/// Returns the number of GPUs that are visible to the process.
int num_gpus();

/// Returns the address at which the library itself accesses the memory at `data`, because GPU
/// memory has no access rights at its own address. Returns `data` for any other memory.
void* host_address(const void* data);

/// Returns whether the stream is part of a capture.
bool is_capturing(cudaStream_t stream);

/// Called right before the calling thread runs work of a stream. Finishes the copies that the
/// stream has queued, and checks the accesses against the accesses of other streams. In a capture,
/// stores the contents that the work will overwrite instead, so that uncaptured work can see them.
/// @throw std::runtime_error for a race, if races are thrown.
void begin_work(cudaStream_t stream, const Work& work);

/// Stores the work for replays, if the stream is part of a capture.
void record(cudaStream_t stream, Work work);

/// Adds work to the stream that takes time and does nothing else. Earlier copies stay late. In a
/// capture, the work is stored for replays.
void take_time(cudaStream_t stream, const char* label);

/// Makes the stream wait for another thread, such as one that exchanges data with other processes,
/// in the same way that cudaStreamWaitEvent makes it wait for an event. Returns immediately. Until
/// `done` is ready, the stream is not ready, and neither is an event that is recorded after this
/// call. Threads that wait for the stream, or begin its next work, wait without holding a lock that
/// a query of an event or a stream needs.
void stream_wait(cudaStream_t stream, std::shared_future<void> done);

/// Waits for the stream, because the host is about to read its results. If the stream is part of a
/// capture, returns false and invalidates the capture.
bool wait_for_host(cudaStream_t stream);

/// Reports a race or a similar mistake: writes the text to standard error once. If races are
/// thrown, also throws the text, and the process exits with 1 instead of 0.
/// @throw std::runtime_error if races are thrown.
void report_race(const std::string& text);

/// Returns whether the process counts its requests to GPUs.
bool is_counting();

/// Begins a named range for the counts.
void begin_range(const char* name);

/// Ends the most recent range with this name.
void end_range(const char* name);

/// Records that memory, which LibTorch's allocator had assigned to a stream, was returned to the
/// allocator. Work that reuses the memory must come after all work that uses it now. The strict
/// mode does not wait for that: it reports work of other streams that may still use the memory, and
/// fills the memory with 0xFF. Throws nothing, because destructors free memory; the next
/// `begin_work` of any thread throws instead. A graph may continue to use memory of the program's
/// own pool, because nothing else gets it.
void on_freed(const void* data, size_t size, cudaStream_t stream, bool is_of_pool);

}  // namespace simgpu

#pragma GCC visibility pop
