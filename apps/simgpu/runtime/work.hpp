#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <future>
#include <string>
#include <vector>

// For the kernels, which are a library of their own.
#pragma GCC visibility push(default)

// What the kernels ask of the simulated CUDA runtime.
namespace simgpu {

/// Memory without gaps that a piece of work reads or writes, by the address that its user knows.
struct Access {
  const void* data = nullptr;
  size_t size = 0;
  bool writes = false;
  size_t rows = 1;  ///< of this size that the view has which it is a row of
};

/// Whether some memory is in both.
inline bool overlap(const Access& a, const Access& b) {
  const auto* a_begin = static_cast<const char*>(a.data);
  const auto* b_begin = static_cast<const char*>(b.data);
  return a_begin < b_begin + b.size && b_begin < a_begin + a.size;
}

/// A piece of work for a stream.
struct Work {
  /// Name in reports: "aten::add.Tensor". Must live as long as the process.
  const char* label = "";
  std::vector<Access> accesses = {};
  /// Does the work. A graph keeps it and calls it in each replay. May be empty otherwise.
  std::function<void()> run = {};
  /// Whether it is the rest of the work before it, which is counted.
  bool is_continued = false;
};

/// Number of GPUs that the process sees.
int num_gpus();

/// Returns where the library itself reads and writes the memory that `data` names: a GPU's memory
/// has no access rights at its own address. Returns `data` for any other memory.
void* host_address(const void* data);

/// Whether the stream is part of a capture.
bool is_capturing(cudaStream_t stream);

/// Called right before the calling thread does the work of a stream: finishes the copies that the
/// stream has queued, and checks the accesses against those of other streams. In a capture it keeps
/// what the work will overwrite instead, so that work that is not captured can find it.
/// @throw std::runtime_error in a race, if races are to be thrown.
void begin_work(cudaStream_t stream, const Work& work);

/// Keeps the work for the replays, if the stream is part of a capture.
void record(cudaStream_t stream, Work work);

/// Gives the stream work that takes time and does nothing else. Copies that come before it stay
/// late. In a capture it is kept for the replays.
void take_time(cudaStream_t stream, const char* label);

/// Makes the stream wait for what another thread does, such as an exchange with other processes, as
/// cudaStreamWaitEvent makes it wait for an event. Returns at once. Until `done` is ready, an event
/// recorded behind it and the stream itself are not ready, and whoever waits for the stream, or
/// begins its next work, waits without a lock that a query of an event or a stream needs.
void stream_wait(cudaStream_t stream, std::shared_future<void> done);

/// Waits for the stream, because the host is about to read its results. Returns false, and
/// invalidates the capture, if the stream is part of one.
bool wait_for_host(cudaStream_t stream);

/// Reports a race or the like: writes the text to standard error, once. If races are to be thrown,
/// throws it too, and the process ends with 1 where it would end with 0.
/// @throw std::runtime_error if races are to be thrown.
void report_race(const std::string& text);

/// Whether the process counts what it asks of GPUs.
bool is_counting();

/// Begins a named range of the counts.
void begin_range(const char* name);

/// Ends the latest range of this name.
void end_range(const char* name);

/// Tells that LibTorch's allocator has taken back memory that it had given to a stream. Work that
/// gets the memory later must come after all that uses it now. The strict mode does not wait for
/// that: it names the work of other streams that may still use the memory, and fills it with 0xFF.
/// Throws nothing, since destructors free memory: the next `begin_work` of any thread throws. A
/// graph may go on using memory of a pool of the program's own, since nobody else gets it.
void on_freed(const void* data, size_t size, cudaStream_t stream, bool is_of_pool);

}  // namespace simgpu

#pragma GCC visibility pop
