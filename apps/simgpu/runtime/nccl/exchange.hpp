#pragma once

#include <vector>

#include "simgpu/runtime/nccl/operation.hpp"
#include "simgpu/runtime/nccl/peers.hpp"

namespace simgpu::nccl {

/// Runs the operations of one group of calls together with the other ranks: first the collectives
/// in their order, then all sends and receives at once. The addresses are host addresses.
/// @throw Failure if a rank is lost, calls a different collective, or receives a different size
/// than is sent.
/// @throw Aborted
void run_operations(Peers& peers, const std::vector<Operation>& operations);

/// Runs one collective. As in NCCL, it does nothing if there are no elements.
/// @throw Failure if a rank is lost or calls a different collective. @throw Aborted
void run_collective(Peers& peers, const Operation& operation);

/// Runs all sends and receives. Transfers to the same rank are processed in order; transfers to
/// different ranks do not wait for each other.
/// @throw Failure if a rank is lost or receives a different size than is sent. @throw Aborted
void run_transfers(Peers& peers, const std::vector<Operation>& operations);

}  // namespace simgpu::nccl
