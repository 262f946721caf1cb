#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "simgpu/runtime/nccl/communicator.hpp"
#include "simgpu/runtime/nccl/operation.hpp"

namespace simgpu::nccl {

/// An operation that a communicator is to do on a stream.
struct Call {
  std::shared_ptr<Communicator> communicator;
  cudaStream_t stream;
  Operation operation;
};

/// Begins a group of calls of this thread. Groups nest.
void begin_group();

/// Ends a group. The end of the outermost one starts what was called in it.
/// @throw Failure @throw std::runtime_error in a race, if races are to be thrown.
void end_group();

/// Starts the call, or adds it to the group of this thread.
/// @throw Failure @throw std::runtime_error in a race, if races are to be thrown.
void start(Call call);

/// Waits until all ranks of the communicator have joined; in a group, at its end.
/// @throw Failure
void connect(const std::shared_ptr<Communicator>& communicator);

}  // namespace simgpu::nccl
