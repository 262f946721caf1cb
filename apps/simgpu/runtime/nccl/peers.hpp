#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "simgpu/runtime/nccl/shared_memory.hpp"

namespace simgpu::nccl {

/// Thrown by a wait that was interrupted by Peers::abort.
struct Aborted {};

/// The ranks of a communicator, as seen by one of them.
class Peers {
 public:
  /// Joins the communicator, using the calling thread's current GPU. Does not wait for other ranks.
  /// @throw Failure
  Peers(const ncclUniqueId& id, int ranks, int rank);

  /// Waits until all ranks have joined.
  /// @throw Failure if a rank is lost, does not join, or uses the same GPU as another rank.
  void connect();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  const SharedMemory& memory() const { return memory_; }

  /// Starts an activity, which `wait` reports and other ranks can see. Called from the thread that
  /// performs the exchange.
  void begin(Activity activity, const std::string& call);

  /// Restarts the timer used in reports from `wait`, because data has arrived.
  void restart_clock();

  /// Records that this rank is no longer waiting for any other rank, because its exchange has
  /// failed.
  void end_wait();

  /// @throw Aborted if `abort` has been called.
  void check_aborted() const;

  /// Returns the number of barriers so far, which is the same on all ranks.
  uint32_t num_barriers() const { return barriers_; }

  /// Waits until all ranks have arrived.
  /// @throw Failure if a rank is lost. @throw Aborted
  void barrier();

  /// Waits until all ranks have arrived, and checks that all of them make the same call.
  /// @throw Failure if a rank makes a different call or is lost. @throw Aborted
  void barrier_of(const std::string& call);

  /// Calls `missing` repeatedly until it returns no ranks. Between calls, the thread sleeps until
  /// another rank calls `notify` for this rank. A wait of several seconds is reported to standard
  /// error.
  /// @throw Failure if one of the returned ranks is lost. @throw Aborted
  void wait(const std::function<Ranks()>& missing);

  /// Wakes the rank if it is waiting.
  void notify(int rank);

  /// Aborts the current wait and all later waits. Called from another thread. Reports the current
  /// wait.
  void abort();

 private:
  void check_running(const std::function<Ranks()>& missing) const;
  void check_gpus() const;
  bool report_wait(std::chrono::seconds shortest);

  SharedMemory memory_;
  ncclUniqueId id_;
  int ranks_;
  int rank_;
  uint32_t barriers_ = 0;
  std::atomic<bool> is_aborted_ = false;
  std::atomic<bool> is_reported_ = false;
};

}  // namespace simgpu::nccl
