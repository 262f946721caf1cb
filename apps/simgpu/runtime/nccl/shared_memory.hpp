#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "simgpu/runtime/nccl/activity.hpp"
#include "simgpu/runtime/nccl/peer_process.hpp"

namespace simgpu::nccl {

/// The maximum number of ranks in a communicator.
constexpr int max_ranks = 64;

/// The data that a rank shares with the other ranks.
struct alignas(64) Member {
  /// A futex that counts the actions of other ranks that this rank may wait for.
  std::atomic<uint32_t> bell;
  std::atomic<uint32_t> barriers_reached;
  /// Set last. The fields below do not change afterward.
  std::atomic<uint32_t> has_joined;
  Process process;
  /// The PCI bus id of the rank's GPU.
  std::array<char, 16> gpu;
  /// The rank's calls to collectives. The rank writes the next call while others may still be
  /// reading the current one.
  std::array<CallText, 2> calls;
  ActivityRecord activity;
};

/// Data that one rank sends to another in pieces, through a ring buffer with two entries. Each
/// piece is accompanied by a description of its operation, which the receiver compares with its own
/// description. If they differ, the receiver notifies the sender.
struct Channel {
  static constexpr size_t num_pieces = 2;
  static constexpr size_t piece_size = size_t{128} << 10;

  alignas(64) std::atomic<uint32_t> pieces_written;
  alignas(64) std::atomic<uint32_t> pieces_read;
  std::atomic<bool> is_refused;
  CallText received;
  std::array<CallText, num_pieces> sent;
  std::array<size_t, num_pieces> sizes;
  std::array<std::array<char, piece_size>, num_pieces> pieces;
};

/// Data that a rank contributes to collectives, in pieces. The rank writes the next piece while
/// others may still be reading the current one.
struct Slot {
  static constexpr size_t num_pieces = 2;
  static constexpr size_t piece_size = size_t{1} << 20;

  std::array<std::array<char, piece_size>, num_pieces> pieces;
};

/// Memory shared by the ranks of a communicator. It has no name in the file system, so the kernel
/// frees it when the last rank terminates, no matter how it terminates.
class SharedMemory {
 public:
  /// Creates the memory and an id that processes on this machine can use to find it.
  /// @throw Failure
  static ncclUniqueId create();

  /// Releases memory that this process created, because all ranks have mapped it. Does nothing if
  /// this process did not create the memory.
  static void release(const ncclUniqueId& id);

  /// Maps the memory.
  /// @throw Failure if the memory does not exist, or if it was mapped for a different number of
  /// ranks.
  SharedMemory(const ncclUniqueId& id, int ranks);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  Member& member(int rank) const;
  Slot& slot(int rank) const;
  Channel& channel(int from, int to) const;

 private:
  int ranks_;
  size_t size_;
  char* data_;
};

}  // namespace simgpu::nccl
