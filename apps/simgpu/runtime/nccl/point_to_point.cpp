#include <algorithm>
#include <cstring>

#include "simgpu/runtime/nccl/exchange.hpp"

namespace simgpu::nccl {

namespace {

struct Transfer {
  const Operation* operation;
  size_t size;
  size_t done = 0;

  bool is_send() const { return operation->kind == Kind::send; }
  bool is_finished() const { return done == size; }
  size_t next_size() const { return std::min(Channel::piece_size, size - done); }
};

void send_pieces(Peers& peers, Transfer& transfer) {
  auto& channel = peers.memory().channel(peers.rank(), transfer.operation->peer);
  while (!transfer.is_finished()) {
    const auto written = channel.pieces_written.load();
    if (written - channel.pieces_read.load() == Channel::num_pieces) return;
    const size_t size = transfer.next_size();
    std::memcpy(channel.pieces[written % Channel::num_pieces].data(),
                static_cast<const char*>(transfer.operation->sent) + transfer.done, size);
    transfer.done += size;
    channel.pieces_written.store(written + 1);
    peers.notify(transfer.operation->peer);
  }
}

void receive_pieces(Peers& peers, Transfer& transfer) {
  auto& channel = peers.memory().channel(transfer.operation->peer, peers.rank());
  while (!transfer.is_finished()) {
    const auto read = channel.pieces_read.load();
    if (channel.pieces_written.load() == read) return;
    const size_t size = transfer.next_size();
    std::memcpy(static_cast<char*>(transfer.operation->received) + transfer.done,
                channel.pieces[read % Channel::num_pieces].data(), size);
    transfer.done += size;
    channel.pieces_read.store(read + 1);
    peers.notify(transfer.operation->peer);
  }
}

// Does what can be done of the transfers without waiting. Returns the ranks that the rest waits
// for.
Ranks advance(Peers& peers, std::vector<Transfer>& transfers) {
  Ranks sending_to = 0;
  Ranks receiving_from = 0;
  for (auto& transfer : transfers) {
    auto& busy = transfer.is_send() ? sending_to : receiving_from;
    const Ranks peer = Ranks{1} << transfer.operation->peer;
    if ((busy & peer) != 0) continue;
    if (transfer.is_send()) {
      send_pieces(peers, transfer);
    } else {
      receive_pieces(peers, transfer);
    }
    if (!transfer.is_finished()) busy |= peer;
  }
  return sending_to | receiving_from;
}

}  // namespace

void run_transfers(Peers& peers, const std::vector<Operation>& operations) {
  std::vector<Transfer> transfers;
  for (const auto& operation : operations) {
    transfers.push_back({&operation, chunk_size(operation)});
  }
  peers.wait([&] { return advance(peers, transfers); });
}

}  // namespace simgpu::nccl
