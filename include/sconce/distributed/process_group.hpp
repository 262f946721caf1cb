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

/// What a reduction does with the values of all ranks. Python: `torch.distributed.ReduceOp`.
enum class ReduceOp { sum, product, min, max };

/// The arguments of `torch.distributed.init_process_group`, with Python's names and defaults.
struct InitOptions {
  /// What carries the tensors: "gloo" those of CPUs and GPUs, "nccl" those of GPUs only,
  /// "cpu:gloo,cuda:nccl" each its own. Empty: the last where sconce has NCCL and this machine a
  /// GPU for every rank on it, else "gloo".
  std::string backend = {};

  /// How long a rank waits for the others: at most so long in `init`, and in each collective.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);

  /// Where the ranks meet: "env://", at the launcher's MASTER_ADDR and MASTER_PORT;
  /// "tcp://host:port", at rank 0, which has that address; "file:///path", in a file that all see
  /// and that does not exist before.
  std::string init_method = "env://";

  std::optional<int> rank = {};        ///< none: the launcher's
  std::optional<int> world_size = {};  ///< none: the launcher's
};

/// The processes that train together, of which this is one, and what they do in common. Every rank
/// makes the same calls in the same order. A value: copies are the same group. A group of one has
/// no backend, and its collectives do nothing.
///
/// A peer that is lost, stopped or late becomes, on every other rank, an exception that names rank
/// and operation, within the timeout (on GPUs under NCCL, whose errors arrive asynchronously,
/// LibTorch's watchdog ends the process instead). After it the group is of no more use.
///
/// Tensors lie on the CPU or, where the backend has it, on a GPU; there a collective waits as
/// Python's does: on the current stream. Gradients do not flow through collectives. The last owner
/// of the group, a copy or a DistributedDataParallel, closes its connections; collectives under way
/// end by their timeouts. Python: `torch.distributed` with its default group.
class ProcessGroup {
 public:
  /// Joins the group that a launcher started, and returns when every rank has come. Rank and size
  /// are those of the options, else of the environment: torchrun's RANK and WORLD_SIZE (which hands
  /// also set), else Open MPI's OMPI_COMM_WORLD_RANK, else Slurm's SLURM_PROCID; without any, this
  /// process is a group of one. A group of one gets a backend only where options name one and a
  /// launcher, or options, say that it is one.
  ///
  /// Slurm and Open MPI name no address; on one machine the ranks then meet at 127.0.0.1 and a port
  /// made from the job's number. Rank 0 listens on the address named, and no other, and Gloo on
  /// loopback while all ranks are on one machine; GLOO_SOCKET_IFNAME names other interfaces, and is
  /// needed where ranks of several machines meet in a file.
  /// At most one group that meets by TCP at a time. Where SIGPIPE would end this process it is
  /// ignored from then on, as it is in Python. Python: `init_process_group`.
  /// @throw c10::Error if the environment is incomplete or wrong, the address cannot be listened
  /// on, a rank has not come within the timeout, or the backend is unknown or missing.
  [[nodiscard]] static ProcessGroup init(InitOptions options = {});

  /// This process alone, whatever launched it: a group of one without a backend.
  ProcessGroup();
  ProcessGroup(const ProcessGroup&) = default;  // no move, which would leave no group behind
  ProcessGroup& operator=(const ProcessGroup&) = default;

  /// Whether both are copies of one group.
  bool operator==(const ProcessGroup&) const = default;

  int rank() const;        ///< 0 to world_size() - 1. Python: `get_rank()`
  int world_size() const;  ///< the number of processes. Python: `get_world_size()`
  int local_rank() const;  ///< among the ranks of this machine. Python: `get_node_local_rank()`

  /// Where this rank trains: `gpu(local_rank() % num_gpus())`, so on its own GPU where the machine
  /// has one for each rank or the launcher shows each rank one, else on one that it shares; on the
  /// CPU where there is no GPU or `init` was given the backend "gloo", which as in Python stands
  /// for CPUs, though its collectives take tensors of GPUs too. Python: `torch.device("cuda",
  /// local_rank)`.
  torch::Device device() const;

  /// "gloo", "nccl" or "cpu:gloo,cuda:nccl"; empty for a group of one without a backend.
  /// Python: `get_backend_config()`.
  const std::string& backend() const;

  /// Replaces the tensor's values, in place, by those of all ranks' reduced. Same shape and type on
  /// every rank. Python: `all_reduce(tensor, op)`.
  /// @throw c10::Error if a peer fails or is late, or the backend does not serve the tensor.
  void all_reduce(const torch::Tensor& tensor, ReduceOp op = ReduceOp::sum) const;

  /// Replaces the tensor's values, in place, by those of rank `src`. Python: `broadcast`.
  /// @throw c10::Error as all_reduce, and if there is no rank `src`.
  void broadcast(const torch::Tensor& tensor, int src) const;

  /// Returns new tensors with the values of every rank's, in rank order. Python: `all_gather`.
  /// @throw c10::Error as all_reduce.
  [[nodiscard]] std::vector<torch::Tensor> all_gather(const torch::Tensor& tensor) const;

  /// Returns a new tensor: the tensors at this rank's index, of all ranks, reduced.
  /// Python: `reduce_scatter`.
  /// @throw c10::Error as all_reduce, and if the list has not one tensor for every rank.
  [[nodiscard]] torch::Tensor reduce_scatter(const std::vector<torch::Tensor>& tensors,
                                             ReduceOp op = ReduceOp::sum) const;

  /// Returns when every rank has called it. Python: `barrier`.
  /// @throw c10::Error if a peer fails or is late.
  void barrier() const;

  /// LibTorch's own group, for what else it can do; null without a backend. Needs
  /// <torch/csrc/distributed/c10d/ProcessGroup.hpp>.
  c10::intrusive_ptr<c10d::ProcessGroup> c10d() const;

 private:
  struct Core;
  explicit ProcessGroup(std::shared_ptr<const Core> core);

  std::shared_ptr<const Core> core_;
};

}  // namespace sconce::distributed
