#pragma once

#include <nccl.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "simgpu/runtime/nccl/failure.hpp"
#include "simgpu/runtime/nccl/operation.hpp"
#include "simgpu/runtime/nccl/peers.hpp"

namespace simgpu::nccl {

/// The communicator of one rank. A separate thread exchanges data with the other ranks, one job at
/// a time. If a rank is lost or calls a different function, the job does not end until the
/// communicator is aborted, as with an NCCL kernel, and `error` reports the failure.
class Communicator {
 public:
  /// Joins the communicator. @throw Failure
  Communicator(const ncclUniqueId& id, int ranks, int rank);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Finishes the jobs, unless a rank is lost or the communicator has been aborted.
  ~Communicator();

  /// Waits until all ranks have joined. @throw Failure
  void connect() { peers_.connect(); }

  int rank() const { return peers_.rank(); }
  int ranks() const { return peers_.ranks(); }

  /// Returns the GPU that was current when the communicator was created.
  int device() const { return device_; }

  /// Returns ncclSuccess, or the reason that the communicator cannot be used.
  ncclResult_t error() const;

  /// @throw Failure if the communicator cannot be used.
  void check() const;

  /// Submits a job. The result becomes ready when the job ends or the communicator is aborted.
  /// @throw Failure if the communicator cannot be used.
  std::shared_future<void> submit(const char* label, std::function<void(Peers&)> run);

  /// Waits for a job to finish. @throw Failure if the job fails.
  void finish(const std::shared_future<void>& done) const;

  /// Aborts all jobs.
  void abort();

  /// Creates an operator that multiplies elements by a factor before summing them. If the factor is
  /// in GPU memory, it is read when the operation runs.
  ncclRedOp_t create_premultiplied_sum(const void* factor, ncclDataType_t type,
                                       ncclScalarResidence_t residence);

  /// @throw Failure if there is no such operator.
  void destroy(ncclRedOp_t op);

  /// Returns one of NCCL's built-in operators, or an operator that was created. @throw Failure
  Reduction reduction(ncclRedOp_t op) const;

 private:
  struct Job {
    const char* label;
    std::function<void(Peers&)> run;
    std::promise<void> done = {};
  };

  void work();
  std::optional<Job> next_job();
  void run(Job& job);

  Peers peers_;
  int device_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool is_stopped_ = false;
  bool is_aborted_ = false;
  std::optional<Failure> failure_;
  std::map<int, std::shared_ptr<const void>> factors_;
  int next_op_ = ncclNumOps;
  std::thread thread_;
};

}  // namespace simgpu::nccl
