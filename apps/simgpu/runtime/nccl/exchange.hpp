#pragma once

#include <vector>

#include "simgpu/runtime/nccl/operation.hpp"
#include "simgpu/runtime/nccl/peers.hpp"

namespace simgpu::nccl {

/// Does the operations of one group of calls, together with the other ranks: first the collectives
/// in their order, then what is sent and received, all at once. The addresses are the host's.
/// @throw Failure if a rank is lost, calls another collective, or receives another size than is
/// sent.
/// @throw Aborted
void run_operations(Peers& peers, const std::vector<Operation>& operations);

/// Does one collective. It does nothing if it has no elements, as NCCL.
/// @throw Failure if a rank is lost, or calls another collective. @throw Aborted
void run_collective(Peers& peers, const Operation& operation);

/// Does all that is sent and received. What goes to one rank goes in order; different ranks do not
/// wait for each other.
/// @throw Failure if a rank is lost, or receives another size than is sent. @throw Aborted
void run_transfers(Peers& peers, const std::vector<Operation>& operations);

}  // namespace simgpu::nccl
