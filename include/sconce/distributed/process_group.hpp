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
  sum,      ///< the sum
  product,  ///< the product
  min,      ///< the smallest
  max,      ///< the largest
  avg       ///< the mean, rounded towards 0 for integers; with Gloo too, unlike in Python
};

/// The arguments of `torch.distributed.init_process_group`, with Python's names and order.
struct InitOptions {
  /// Backend of the collectives: "gloo" for tensors on CPUs and GPUs, "nccl" for tensors on GPUs
  /// only, "cpu:gloo,cuda:nccl" for one backend per device type. Empty: "cpu:gloo,cuda:nccl" if
  /// sconce has NCCL and each rank has a GPU of its own, else "gloo". All ranks must name the same.
  std::string backend = {};

  /// Where the ranks meet:
  /// - "env://": at MASTER_ADDR and MASTER_PORT from the launcher;
  /// - "tcp://host:port": at this address, which belongs to rank 0;
  /// - "file:///path": in a file that all ranks can access and that does not exist yet.
  std::string init_method = "env://";

  /// Longest time that a rank waits for the others, in `init` and in each collective. Python's
  /// default for NCCL is ten minutes.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);

  std::optional<int> world_size = {};  ///< none: taken from the launcher
  std::optional<int> rank = {};        ///< none: taken from the launcher
};

/// A group of processes that train together, including this one, with their collectives. Every rank
/// must make the same calls in the same order. It is a value: copies are the same group. A group of
/// one has no backend unless one was asked for; without a backend collectives do nothing.
///
/// If a rank is lost, stopped or late, every other rank throws an exception within the timeout,
/// which names its own rank and the operation. The group cannot be used afterwards. NCCL on GPUs is
/// different: its errors arrive asynchronously, and LibTorch's watchdog ends the process. It does
/// so to the others if a rank throws; the rank itself, if the exception destroys its group, aborts
/// its collectives and goes on with the exception.
///
/// Tensors may be on the CPU or, if the backend supports it, on a GPU. On a GPU a collective waits
/// as in Python: on the current stream. Gradients do not flow through collectives. The connections
/// close when the last owner goes, which is a copy of the group or a DistributedDataParallel;
/// collectives still running end by their timeouts. With NCCL the last owner waits for them, unless
/// an exception destroys it. Python: `torch.distributed` with its default group.
class ProcessGroup {
 public:
  /// Joins the group that a launcher started, and returns when all ranks have joined. Rank and size
  /// come from the options, else from torchrun's RANK and WORLD_SIZE (which may also be set by
  /// hand), else from Open MPI's OMPI_COMM_WORLD_RANK, else from Slurm's SLURM_PROCID. Without any
  /// of them this process is a group of one. A group of one gets a backend only if the options name
  /// one and its size comes from the options or a launcher.
  ///
  /// Slurm and Open MPI name no address. On one machine the ranks then meet at 127.0.0.1, at a port
  /// derived from the job number. Rank 0 listens on the named address only. If some ranks may be on
  /// other machines, and the name is a loopback address on rank 0's machine or has several there,
  /// it listens on all: others may know it by another. Gloo uses loopback if all ranks are on one
  /// machine; GLOO_SOCKET_IFNAME selects other interfaces, and is required if ranks of several
  /// machines meet in a file.
  /// Only one group that meets by TCP may exist at a time. If SIGPIPE would end this process, it is
  /// ignored from then on, as in Python. Python: `init_process_group`.
  /// @throw c10::Error if:
  /// - the environment is incomplete or wrong, or the options contradict each other;
  /// - rank 0 cannot listen on the address;
  /// - a rank has not joined within the timeout;
  /// - the backend is unknown or not available, or other ranks name another.
  [[nodiscard]] static ProcessGroup init(const InitOptions& options = {});

  /// Makes a group of this process alone, without a backend, even under a launcher.
  ProcessGroup();
  ProcessGroup(const ProcessGroup&) = default;  // no move: it would leave an empty object
  ProcessGroup& operator=(const ProcessGroup&) = default;

  /// Returns whether both are copies of one group.
  bool operator==(const ProcessGroup&) const = default;

  int rank() const;        ///< 0 to world_size() - 1. Python: `get_rank()`
  int world_size() const;  ///< number of processes. Python: `get_world_size()`
  int local_rank() const;  ///< rank on this machine. Python: `get_node_local_rank()`

  /// Returns the device on which this rank should train: `gpu(local_rank() % num_gpus())`. Each
  /// rank has its own GPU if the machine has enough or the launcher shows each rank a different
  /// one; otherwise ranks share GPUs. It is the CPU if there is no GPU, or if `init` was given the
  /// backend "gloo": as in Python that stands for CPUs, although its collectives also accept
  /// tensors on GPUs. Python: `torch.device("cuda", local_rank)`.
  torch::Device device() const;

  /// Returns "gloo", "nccl" or "cpu:gloo,cuda:nccl", or an empty string for a group without a
  /// backend.
  /// Python: `get_backend_config()`.
  const std::string& backend() const;

  /// Makes a group of some of this group's ranks, with the same backend. Every rank of this group
  /// must call it, with the same ranks, and all return when the new group is connected. The ranks
  /// in the new group follow the order in this one. Returns nothing on a rank that is not in the
  /// list. The new group keeps this one alive. `timeout` is this group's unless it is given.
  /// Python: `torch.distributed.new_group(ranks, timeout)`.
  /// @throw c10::Error if the list is empty, names a rank twice or one that does not exist, or
  /// differs from another rank's, or if a rank does not call it within the timeout.
  [[nodiscard]] std::optional<ProcessGroup> new_group(
      std::vector<int> ranks,
      std::optional<std::chrono::milliseconds> timeout = std::nullopt) const;

  /// Reduces the tensor over all ranks, in place. Shape and type must be the same on every rank.
  /// Python: `all_reduce(tensor, op)`.
  /// @throw c10::Error if a peer fails or is late, or if the backend does not support the tensor.
  void all_reduce(const torch::Tensor& tensor, ReduceOp op = ReduceOp::sum) const;

  /// Replaces the values of the tensor, in place, by those of rank `src`. Python: `broadcast`.
  /// @throw c10::Error if there is no rank `src`, or under the same conditions as all_reduce.
  void broadcast(const torch::Tensor& tensor, int src) const;

  /// Returns new tensors with the values of each rank's tensor, in rank order. Python:
  /// `all_gather`.
  /// @throw c10::Error under the same conditions as all_reduce.
  [[nodiscard]] std::vector<torch::Tensor> all_gather(const torch::Tensor& tensor) const;

  /// Reduces each tensor of the list over all ranks and returns, as a new tensor, the result at the
  /// index of this rank.
  /// Python: `reduce_scatter`.
  /// @throw c10::Error if the list does not have one tensor for each rank, or under the same
  /// conditions as all_reduce.
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
