#include <algorithm>
#include <cstring>
#include <string>

#include "simgpu/runtime/nccl/exchange.hpp"

namespace simgpu::nccl {

namespace {

// The part of each chunk that the ranks transfer at a time. The ranks exchange all pieces through
// their slots.
struct Piece {
  const Operation& operation;
  size_t offset;
  size_t size;
  // Within a slot, the distance from the start of one chunk's piece to the start of the next
  // chunk's piece.
  size_t stride;
  uint32_t turn;

  char* in_slot(const Peers& peers, int rank, int chunk) const {
    auto& pieces = peers.memory().slot(rank).pieces;
    return pieces[turn % Slot::num_pieces].data() + static_cast<size_t>(chunk) * stride;
  }

  size_t in_buffer(int chunk) const {
    return static_cast<size_t>(chunk) * chunk_size(operation) + offset;
  }
};

void put(const Peers& peers, const Piece& piece) {
  const auto* from = static_cast<const char*>(piece.operation.sent);
  const int chunks = chunks_sent(piece.operation, peers.rank(), peers.ranks());
  for (int chunk = 0; chunk < chunks; ++chunk) {
    std::memcpy(piece.in_slot(peers, peers.rank(), chunk), from + piece.in_buffer(chunk),
                piece.size);
  }
}

void take(const Peers& peers, const Piece& piece) {
  const auto& operation = piece.operation;
  const int chunks = chunks_received(operation, peers.rank(), peers.ranks());
  if (chunks == 0) return;
  const int chunk_for_me = sends_to_each(operation.kind) ? peers.rank() : 0;
  auto* to = static_cast<char*>(operation.received);
  if (reduces(operation.kind)) {
    std::vector<const void*> inputs;
    for (int rank = 0; rank < peers.ranks(); ++rank) {
      inputs.push_back(piece.in_slot(peers, rank, chunk_for_me));
    }
    return reduce(operation.reduction, operation.type, inputs, to + piece.offset,
                  piece.size / size_of(operation.type));
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int from = operation.kind == Kind::broadcast ? operation.peer : chunk;
    std::memcpy(to + piece.in_buffer(chunk), piece.in_slot(peers, from, chunk_for_me), piece.size);
  }
}

}  // namespace

// One barrier per piece is enough. When a rank has passed the barrier for a piece, all ranks have
// read the previous piece, so the next piece can use the same part of the slots.
void run_collective(Peers& peers, const Operation& operation) {
  const size_t size = chunk_size(operation);
  const size_t chunks = sends_to_each(operation.kind) ? static_cast<size_t>(peers.ranks()) : 1;
  constexpr size_t alignment = 64;
  const size_t stride = Slot::piece_size / chunks / alignment * alignment;
  const std::string call = describe(operation);
  peers.begin(Activity::exchanging, call);
  for (size_t offset = 0; offset < size; offset += stride) {
    const Piece piece{operation, offset, std::min(stride, size - offset), stride,
                      peers.num_barriers()};
    put(peers, piece);
    if (offset == 0) {
      peers.barrier_of(call);
    } else {
      peers.barrier();
    }
    take(peers, piece);
  }
}

void run_operations(Peers& peers, const std::vector<Operation>& operations) {
  std::vector<Operation> transfers;
  for (const auto& operation : operations) {
    if (operation.kind == Kind::send || operation.kind == Kind::receive) {
      transfers.push_back(operation);
    } else {
      run_collective(peers, operation);
    }
  }
  run_transfers(peers, transfers);
}

}  // namespace simgpu::nccl
