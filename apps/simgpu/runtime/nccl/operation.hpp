#pragma once

#include <nccl.h>

#include <cstddef>
#include <string>
#include <vector>

#include "simgpu/runtime/nccl/reduction.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu::nccl {

enum class Kind {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  send,
  receive,
};

/// A single call to a collective, ncclSend, or ncclRecv.
struct Operation {
  Kind kind;
  /// The name of the NCCL function.
  const char* label;
  const void* sent;
  void* received;
  /// The number of elements in a chunk. A collective sends or receives one chunk in total, or one
  /// chunk per rank.
  size_t count;
  ncclDataType_t type;
  /// The root rank, or the rank at the other end of the transfer.
  int peer = 0;
  Reduction reduction = {};
};

/// Returns the size of a chunk in bytes.
inline size_t chunk_size(const Operation& operation) {
  return operation.count * size_of(operation.type);
}

/// Returns whether each chunk is sent to a different rank.
bool sends_to_each(Kind kind);

/// Returns whether the chunks of all ranks are reduced to a single chunk.
bool reduces(Kind kind);

/// Returns the number of chunks that the rank sends.
int chunks_sent(const Operation& operation, int rank, int ranks);

/// Returns the number of chunks that the rank receives.
int chunks_received(const Operation& operation, int rank, int ranks);

/// Returns a description such as "ncclAllReduce of 100 float32, sum" or "ncclSend of 100 float32 to
/// rank 1". The description must be identical on all ranks of a collective.
std::string describe(const Operation& operation);

/// Returns the memory that the operation uses on the rank.
std::vector<Access> accesses_of(const Operation& operation, int rank, int ranks);

/// Returns the operation with the addresses at which this library accesses the memory.
Operation on_host(Operation operation);

}  // namespace simgpu::nccl
