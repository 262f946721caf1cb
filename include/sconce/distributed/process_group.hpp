#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"

namespace c10d {
class ProcessGroup;
}  // namespace c10d

namespace sconce::distributed {

/// Returns whether sconce was built with NCCL. Python: `torch.distributed.is_nccl_available()`.
bool is_nccl_available() noexcept;

/// How a reduction combines the values of all ranks. Python: `torch.distributed.ReduceOp`.
enum class ReduceOp {
  sum,      ///< sum of the values
  product,  ///< product of the values
  min,      ///< smallest value
  max,      ///< largest value
  avg       ///< mean, rounded toward 0 for integers; unlike in Python, also with Gloo
};

/// Options for `ProcessGroup::init`, with the names and order of
/// `torch.distributed.init_process_group`.
struct InitOptions {
  /// Backend of the collectives: "gloo" for tensors on CPUs and GPUs, "nccl" for tensors on GPUs
  /// only, or "cpu:gloo,cuda:nccl" for one backend per device type. By default, it is
  /// "cpu:gloo,cuda:nccl" if sconce was built with NCCL and each rank has a separate GPU, and
  /// "gloo" otherwise. All ranks must specify the same backend.
  std::string backend = {};

  /// Where the ranks meet:
  /// - "env://": at MASTER_ADDR and MASTER_PORT from the launcher;
  /// - "tcp://host:port": at this address, which belongs to rank 0;
  /// - "file:///path": in a file that all ranks can access and that does not exist yet.
  std::string init_method = "env://";

  /// Maximum time that a rank waits for the others, in `init` and in each collective. Python's
  /// default for NCCL is ten minutes.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);

  std::optional<int> world_size = {};  ///< taken from the launcher by default
  std::optional<int> rank = {};        ///< taken from the launcher by default
};

/// A group of processes that train together, including this one, and their collectives. Every rank
/// must make the same calls in the same order. A ProcessGroup is a value type, and copies refer to
/// the same group. A group of one has no backend unless one was requested. Without a backend,
/// collectives do nothing.
///
/// If a rank is lost, stopped, or late, every other rank throws an exception within the timeout.
/// Its message contains the throwing rank and the operation. The group cannot be used afterwards.
/// NCCL on GPUs behaves differently: its errors arrive asynchronously, and LibTorch's watchdog
/// terminates the process. If a rank throws, the watchdog terminates the other processes. The
/// throwing rank itself aborts its collectives if the exception destroys its group, and then
/// continues with the exception.
///
/// Tensors may be on the CPU or, if the backend supports it, on a GPU. On a GPU, a collective waits
/// on the current stream, as in Python. Gradients do not flow through collectives. The connections
/// close when the last owner is destroyed. Owners are copies of the group and
/// DistributedDataParallel objects. Collectives that are still running then end with their
/// timeouts. With NCCL, the last owner waits for them unless an exception destroys it.
/// Python: `torch.distributed` with its default group.
class ProcessGroup {
 public:
  /// Joins the group that a launcher started, and returns when all ranks have joined. Rank and size
  /// are taken from the options, otherwise from torchrun's RANK and WORLD_SIZE (which you can also
  /// set yourself), otherwise from Open MPI's OMPI_COMM_WORLD_RANK, otherwise from Slurm's
  /// SLURM_PROCID. If none of them is set, this process is a group of one. A group of one gets a
  /// backend only if the options specify one and its size comes from the options or a launcher.
  ///
  /// Slurm and Open MPI do not provide an address. On a single machine, the ranks then meet at
  /// 127.0.0.1, at a port derived from the job number. Rank 0 listens only on the given address,
  /// with one exception: if some ranks may be on other machines, and the host name resolves to a
  /// loopback address or to several addresses on rank 0's machine, rank 0 listens on all addresses
  /// of the machine, because the others may resolve the name to a different one. Gloo uses loopback
  /// if all ranks are on one machine. GLOO_SOCKET_IFNAME selects other interfaces, and is required
  /// if ranks on several machines meet in a file. Only one group that meets over TCP may exist at a
  /// time. If SIGPIPE would terminate this process, it is ignored from then on, as in Python.
  /// Python: `init_process_group`.
  /// @throw c10::Error if:
  /// - the environment is incomplete or wrong, or the options contradict each other;
  /// - rank 0 cannot listen on the address;
  /// - a rank has not joined within the timeout;
  /// - the backend is unknown or not available, or other ranks specify a different one.
  [[nodiscard]] static ProcessGroup init(const InitOptions& options = {});

  /// Constructs a group that contains only this process, without a backend, even under a launcher.
  ProcessGroup();
  ProcessGroup(const ProcessGroup&) = default;  // no move, because it would leave an empty object
  ProcessGroup& operator=(const ProcessGroup&) = default;

  /// Returns whether both are copies of the same group.
  bool operator==(const ProcessGroup&) const = default;

  int rank() const;        ///< 0 to world_size() - 1. Python: `get_rank()`
  int world_size() const;  ///< number of processes. Python: `get_world_size()`
  int local_rank() const;  ///< rank on this machine. Python: `get_node_local_rank()`

  /// Returns the device on which this rank should train: `gpu(local_rank() % num_gpus())`. Each
  /// rank has its own GPU if the machine has enough of them or the launcher shows each rank a
  /// different one. Otherwise, ranks share GPUs. Returns the CPU if there is no GPU, or if the
  /// backend "gloo" was passed to `init`. As in Python, "gloo" stands for CPUs, although its
  /// collectives also accept tensors on GPUs. Python: `torch.device("cuda", local_rank)`.
  torch::Device device() const;

  /// Returns "gloo", "nccl", or "cpu:gloo,cuda:nccl", or an empty string for a group without a
  /// backend. Python: `get_backend_config()`.
  const std::string& backend() const;

  /// Creates a group of some of this group's ranks, with the same backend. Every rank of this group
  /// must call it with the same `ranks`, and all calls return when the new group is connected.
  /// Ranks in the new group are in the same order as in this one. Returns `std::nullopt` on a rank
  /// that is not in `ranks`. The new group keeps this one alive. `timeout` defaults to this group's
  /// timeout. Python: `torch.distributed.new_group(ranks, timeout)`.
  /// @throw c10::Error if `ranks` is empty, contains a rank twice or one that does not exist, or
  /// differs from another rank's, or if a rank does not call it within the timeout.
  [[nodiscard]] std::optional<ProcessGroup> new_group(
      std::vector<int> ranks,
      std::optional<std::chrono::milliseconds> timeout = std::nullopt) const;

  /// Reduces `tensor` over all ranks, in place. The shape and type must be the same on every rank.
  /// Python: `all_reduce(tensor, op)`.
  /// @throw c10::Error if a peer fails or is late, or if the backend does not support the tensor.
  void all_reduce(const torch::Tensor& tensor, ReduceOp op = ReduceOp::sum) const;

  /// Replaces the values of `tensor`, in place, with the values on rank `src`. Python: `broadcast`.
  /// @throw c10::Error if rank `src` does not exist, or in the same cases as all_reduce.
  void broadcast(const torch::Tensor& tensor, int src) const;

  /// Returns new tensors with the values of each rank's `tensor`, in rank order.
  /// Python: `all_gather`.
  /// @throw c10::Error in the same cases as all_reduce.
  [[nodiscard]] std::vector<torch::Tensor> all_gather(const torch::Tensor& tensor) const;

  /// Reduces each of the `tensors` over all ranks and returns the result at this rank's index as a
  /// new tensor. Python: `reduce_scatter`.
  /// @throw c10::Error if there is not exactly one tensor per rank, or in the same cases as
  /// all_reduce.
  [[nodiscard]] torch::Tensor reduce_scatter(const std::vector<torch::Tensor>& tensors,
                                             ReduceOp op = ReduceOp::sum) const;

  /// Waits until every rank has called it. Python: `barrier`.
  /// @throw c10::Error if a peer fails or is late.
  void barrier() const;

  /// Returns LibTorch's own group, for its other functions. Null without a backend. Requires
  /// <torch/csrc/distributed/c10d/ProcessGroup.hpp>.
  c10::intrusive_ptr<c10d::ProcessGroup> c10d() const;

 private:
  struct Core;
  explicit ProcessGroup(std::shared_ptr<const Core> core);

  std::shared_ptr<const Core> core_;
};

}  // namespace sconce::distributed
