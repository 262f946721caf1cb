#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "simgpu/runtime/nccl/communicator.hpp"
#include "simgpu/runtime/nccl/operation.hpp"

namespace simgpu::nccl {

/// An operation that a communicator runs on a stream.
struct Call {
  std::shared_ptr<Communicator> communicator;
  cudaStream_t stream;
  Operation operation;
};

/// Starts a group of calls in this thread. Groups can be nested.
void begin_group();

/// Ends a group. The end of the outermost group starts all of its calls.
/// @throw Failure @throw std::runtime_error for a race, if races are configured to throw.
void end_group();

/// Starts the call, or adds it to this thread's group if there is one.
/// @throw Failure @throw std::runtime_error for a race, if races are configured to throw.
void start(Call call);

/// Waits until all ranks of the communicator have joined. Within a group, the wait takes place at
/// the end of the group.
/// @throw Failure
void connect(const std::shared_ptr<Communicator>& communicator);

}  // namespace simgpu::nccl
