#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "simgpu/runtime/nccl/shared_memory.hpp"

namespace simgpu::nccl {

/// Thrown in a wait that Peers::abort has ended.
struct Aborted {};

/// The ranks of a communicator, as one of them sees the others.
class Peers {
 public:
  /// Joins the communicator, with the current GPU of the calling thread. Does not wait for others.
  /// @throw Failure
  Peers(const ncclUniqueId& id, int ranks, int rank);

  /// Waits until all ranks have joined.
  /// @throw Failure if a rank is lost, does not come, or has the same GPU as another one.
  void connect();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  const SharedMemory& memory() const { return memory_; }

  /// Begins what `wait` reports and the other ranks see, in the thread that exchanges.
  void begin(Activity activity, const std::string& call);

  /// Lets `wait` report only what it waits for from now on, since something has come.
  void restart_clock();

  /// Tells that the rank waits for nobody, since its exchange has failed.
  void end_wait();

  /// @throw Aborted if `abort` has been called.
  void check_aborted() const;

  /// Number of barriers so far, which is the same in all ranks.
  uint32_t num_barriers() const { return barriers_; }

  /// Waits until all ranks are here.
  /// @throw Failure if a rank is lost. @throw Aborted
  void barrier();

  /// Waits until all ranks are here, and checks that all do the same.
  /// @throw Failure if a rank does something else, or is lost. @throw Aborted
  void barrier_of(const std::string& call);

  /// Calls `missing` again and again, until it returns no rank. In between the thread sleeps until
  /// a rank calls `notify` for this one. A wait of some seconds is reported on standard error.
  /// @throw Failure if one of the ranks that it returns is lost. @throw Aborted
  void wait(const std::function<Ranks()>& missing);

  /// Wakes the rank if it waits.
  void notify(int rank);

  /// Ends the present wait and all later ones, from another thread. Reports the present one.
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
