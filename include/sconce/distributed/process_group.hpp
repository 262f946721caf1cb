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

/// Returns whether sconce was built with NCCL.
/// Python: `torch.distributed.is_nccl_available()`.
bool is_nccl_available() noexcept;

/// How a reduction combines the values from all ranks.
/// Python: `torch.distributed.ReduceOp`.
enum class ReduceOp {
  sum,      ///< sum of the values
  product,  ///< product of the values
  min,      ///< smallest value
  max,      ///< largest value
  avg       ///< mean, rounded toward 0 for integers; unlike in Python, Gloo supports it
};

/// Options for `ProcessGroup::init`, with the same names and order as
/// `torch.distributed.init_process_group`.
struct InitOptions {
  /// Backend of the collectives: "gloo" for tensors on CPUs and GPUs, "nccl" for tensors on GPUs
  /// only, or "cpu:gloo,cuda:nccl" for one backend per device type. Defaults to
  /// "cpu:gloo,cuda:nccl" if sconce was built with NCCL and each rank has a separate GPU, and to
  /// "gloo" otherwise. All ranks must specify the same backend.
  std::string backend = {};

  /// Where the ranks meet:
  /// - "env://": at the launcher's MASTER_ADDR and MASTER_PORT;
  /// - "tcp://host:port": at the given address of rank 0;
  /// - "file:///path": in a file that all ranks can access and that does not exist yet.
  std::string init_method = "env://";

  /// Maximum time that a rank waits for other ranks in `init` and in each collective. Python's
  /// default for NCCL is ten minutes.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);

  std::optional<int> world_size = {};  ///< defaults to the launcher's value
  std::optional<int> rank = {};        ///< defaults to the launcher's value
};

/// A group of processes that train together. The group includes the current process and provides
/// collectives over all of its processes. Every rank must make the same calls in the same order. A
/// ProcessGroup is a value type, and copies refer to the same group. A single-process group has no
/// backend unless a backend was requested. Without a backend, collectives do nothing.
///
/// If a rank fails, stops responding, or is late, every other rank throws an exception within the
/// timeout. The message identifies the operation and the rank that threw the exception. The group
/// cannot be used afterward. NCCL on GPUs behaves differently: its errors are reported
/// asynchronously, and LibTorch's watchdog terminates the process. If a rank throws, the watchdog
/// terminates the other processes. If stack unwinding destroys the group on the throwing rank, that
/// rank aborts its collectives, and the exception then propagates as usual.
///
/// Tensors may be on the CPU or, if the backend supports it, on a GPU. As in Python, the current
/// GPU stream waits for a collective to finish. Gradients do not flow through collectives. The
/// connections are closed when the last owner of the group is destroyed. The owners are the group's
/// copies and the DistributedDataParallel objects that use the group. Collectives that are still
/// running when the connections are closed end no later than when their timeouts expire. With NCCL,
/// the last owner waits for running collectives unless the owner is destroyed by stack unwinding.
/// Python: `torch.distributed` with its default group.
class ProcessGroup {
 public:
  /// Joins the group started by a launcher, and returns when all ranks have joined. The rank and
  /// size are read from the first available source: the options, torchrun's RANK and WORLD_SIZE
  /// (which you can also set yourself), Open MPI's OMPI_COMM_WORLD_RANK, or Slurm's SLURM_PROCID.
  /// If none of these is set, the process forms a single-process group. A single-process group gets
  /// a backend only if one is specified in the options and the group size is set, either in the
  /// options or by a launcher.
  ///
  /// Slurm and Open MPI do not provide an address. If all ranks run on a single machine, they
  /// connect to 127.0.0.1, on a port derived from the job number. Rank 0 usually listens only on
  /// the given address. However, if some ranks may be on other machines and the host name resolves
  /// to a loopback address or to several addresses on rank 0's machine, rank 0 listens on all
  /// addresses of the machine, because other ranks may resolve the name to a different address.
  /// Gloo uses the loopback interface if all ranks are on one machine. The GLOO_SOCKET_IFNAME
  /// environment variable selects other network interfaces, and it must be set if ranks on
  /// several machines use a file as `init_method`. Only one group initialized over TCP may exist at
  /// a time. As in Python, if SIGPIPE would terminate the process, the signal is ignored for the
  /// rest of the process.
  /// Python: `init_process_group`.
  /// @throw c10::Error if:
  /// - the environment variables are incomplete or invalid, or the options contradict each other;
  /// - rank 0 cannot listen on the address;
  /// - a rank does not join within the timeout;
  /// - the backend is unknown or unavailable, or other ranks specify a different backend.
  [[nodiscard]] static ProcessGroup init(const InitOptions& options = {});

  /// Constructs a group that has no backend and contains only the current process, even if a
  /// launcher started the process.
  ProcessGroup();
  ProcessGroup(const ProcessGroup&) = default;  // not movable, because a move would leave an empty
                                                // object
  ProcessGroup& operator=(const ProcessGroup&) = default;

  /// Returns whether both objects refer to the same group.
  bool operator==(const ProcessGroup&) const = default;

  int rank() const;        ///< 0 to world_size() - 1. Python: `get_rank()`
  int world_size() const;  ///< number of processes. Python: `get_world_size()`
  int local_rank() const;  ///< rank on this machine. Python: `get_node_local_rank()`

  /// Returns the device on which this rank should train: `gpu(local_rank() % num_gpus())`. Each
  /// rank has a separate GPU if the machine has enough GPUs or the launcher makes a different GPU
  /// visible to each rank. Otherwise, ranks share GPUs. Returns the CPU if there is no GPU, or if
  /// the "gloo" backend was passed to `init`. As in Python, "gloo" selects the CPU, although its
  /// collectives also accept tensors on GPUs. Python: `torch.device("cuda", local_rank)`.
  torch::Device device() const;

  /// Returns "gloo", "nccl", or "cpu:gloo,cuda:nccl", or an empty string for a group without a
  /// backend. Python: `get_backend_config()`.
  const std::string& backend() const;

  /// Creates a group that contains a subset of this group's ranks and uses the same backend. Every
  /// rank of this group must call this function with the same `ranks`, and each call returns once
  /// the new group is connected. Ranks keep their relative order in the new group. Returns
  /// `std::nullopt` on a rank that is not in `ranks`. The new group keeps this group alive.
  /// `timeout` defaults to this group's timeout.
  /// Python: `torch.distributed.new_group(ranks, timeout)`.
  /// @throw c10::Error if:
  /// - `ranks` is empty, contains a duplicate or nonexistent rank, or differs between ranks;
  /// - a rank does not call this function within the timeout.
  [[nodiscard]] std::optional<ProcessGroup> new_group(
      std::vector<int> ranks,
      std::optional<std::chrono::milliseconds> timeout = std::nullopt) const;

  /// Reduces `tensor` over all ranks, in place. The shape and type must be the same on every rank.
  /// Python: `all_reduce(tensor, op)`.
  /// @throw c10::Error if a peer fails or times out, or if the backend does not support the tensor.
  void all_reduce(const torch::Tensor& tensor, ReduceOp op = ReduceOp::sum) const;

  /// Overwrites `tensor`, in place, with the values from rank `src`. Python: `broadcast`.
  /// @throw c10::Error if rank `src` does not exist, or in the same cases as `all_reduce`.
  void broadcast(const torch::Tensor& tensor, int src) const;

  /// Gathers `tensor` from every rank and returns the values as new tensors, in rank order.
  /// Python: `all_gather`.
  /// @throw c10::Error in the same cases as `all_reduce`.
  [[nodiscard]] std::vector<torch::Tensor> all_gather(const torch::Tensor& tensor) const;

  /// Reduces each tensor in `tensors` over all ranks. Returns a new tensor that contains the result
  /// for the tensor at this rank's index. Python: `reduce_scatter`.
  /// @throw c10::Error if there is not exactly one tensor per rank, or in the same cases as
  /// `all_reduce`.
  [[nodiscard]] torch::Tensor reduce_scatter(const std::vector<torch::Tensor>& tensors,
                                             ReduceOp op = ReduceOp::sum) const;

  /// Waits until every rank has called this function. Python: `barrier`.
  /// @throw c10::Error if a peer fails or times out.
  void barrier() const;

  /// Returns the underlying LibTorch group, which provides additional functions, or null if there
  /// is no backend. Requires <torch/csrc/distributed/c10d/ProcessGroup.hpp>.
  c10::intrusive_ptr<c10d::ProcessGroup> c10d() const;

 private:
  struct Core;
  explicit ProcessGroup(std::shared_ptr<const Core> core);

  std::shared_ptr<const Core> core_;
};

}  // namespace sconce::distributed
