#pragma once

#include <nccl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "simgpu/runtime/nccl/activity.hpp"
#include "simgpu/runtime/nccl/peer_process.hpp"

namespace simgpu::nccl {

/// Most ranks of a communicator.
constexpr int max_ranks = 64;

/// What a rank tells the others.
struct alignas(64) Member {
  /// Counts what others have done that the rank may wait for. A futex.
  std::atomic<uint32_t> bell;
  std::atomic<uint32_t> barriers_reached;
  /// Set last: the fields below do not change after it.
  std::atomic<uint32_t> has_joined;
  Process process;
  /// PCI bus id of its GPU.
  std::array<char, 16> gpu;
  /// What it does in a collective. While others still read one, it writes the next.
  std::array<CallText, 2> calls;
  ActivityRecord activity;
};

/// What one rank sends to another, in pieces: a ring of two. With each piece goes what it is a part
/// of, for the receiver to compare. If that is not what it receives, it says so to the sender.
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

/// What a rank gives in collectives, in pieces. While the others still read one, it writes the
/// next.
struct Slot {
  static constexpr size_t num_pieces = 2;
  static constexpr size_t piece_size = size_t{1} << 20;

  std::array<std::array<char, piece_size>, num_pieces> pieces;
};

/// Memory that the ranks of a communicator share. It has no name in the file system: the kernel
/// frees it when the last rank has ended, however it ends.
class SharedMemory {
 public:
  /// Creates the memory, and an id by which processes of this machine find it.
  /// @throw Failure
  static ncclUniqueId create();

  /// Lets go of memory that this process created, since all ranks have it. Otherwise does nothing.
  static void release(const ncclUniqueId& id);

  /// Maps the memory.
  /// @throw Failure if there is none, or if it was mapped for another number of ranks.
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
