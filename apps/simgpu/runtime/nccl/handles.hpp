#pragma once

#include <nccl.h>

#include <memory>

#include "simgpu/runtime/nccl/communicator.hpp"

namespace simgpu::nccl {

/// Stores the communicator and returns its handle.
ncclComm_t add_handle(std::shared_ptr<Communicator> communicator);

/// Returns the communicator for a handle. @throw Failure if there is none.
std::shared_ptr<Communicator> find_handle(ncclComm_t handle);

/// Removes the communicator for a handle and returns it. @throw Failure if there is none.
std::shared_ptr<Communicator> take_handle(ncclComm_t handle);

}  // namespace simgpu::nccl
