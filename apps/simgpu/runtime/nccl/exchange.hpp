#pragma once

#include <vector>

#include "simgpu/runtime/nccl/operation.hpp"
#include "simgpu/runtime/nccl/peers.hpp"

namespace simgpu::nccl {

/// Runs the operations of one group of calls together with the other ranks. The collectives run
/// first, in order, and then all sends and receives run at once. The addresses are host addresses.
/// @throw Failure if a rank is lost, calls a different collective, or expects a different size from
/// the one that is sent.
/// @throw Aborted
void run_operations(Peers& peers, const std::vector<Operation>& operations);

/// Runs one collective. As in NCCL, this does nothing if there are no elements.
/// @throw Failure if a rank is lost or calls a different collective. @throw Aborted
void run_collective(Peers& peers, const Operation& operation);

/// Runs all sends and receives. Transfers to the same rank are processed in order. Transfers to
/// different ranks do not wait for each other.
/// @throw Failure if a rank is lost or expects a different size from the one that is sent. @throw
/// Aborted
void run_transfers(Peers& peers, const std::vector<Operation>& operations);

}  // namespace simgpu::nccl
