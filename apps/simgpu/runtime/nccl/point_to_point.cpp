#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

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

Failure different_sizes(int receiver, const char* received, int sender, const char* sent) {
  return {ncclInvalidUsage, "rank " + std::to_string(receiver) + " calls " + received +
                                ", but rank " + std::to_string(sender) + " calls " + sent};
}

void set_text(CallText& text, const Operation& operation) {
  std::snprintf(text.data(), text.size(), "%s", describe(operation).c_str());
}

// The receiving rank calls this function after it has read the sender's size.
void check_size(Peers& peers, Channel& channel, const Transfer& transfer, size_t piece) {
  if (channel.sizes[piece] == transfer.size) return;
  const int sender = transfer.operation->peer;
  set_text(channel.received, *transfer.operation);
  channel.is_refused.store(true);
  peers.notify(sender);
  throw different_sizes(peers.rank(), channel.received.data(), sender, channel.sent[piece].data());
}

void send_pieces(Peers& peers, Transfer& transfer) {
  auto& channel = peers.memory().channel(peers.rank(), transfer.operation->peer);
  while (!transfer.is_finished()) {
    const auto written = channel.pieces_written.load();
    if (channel.is_refused.load()) {
      throw different_sizes(transfer.operation->peer, channel.received.data(), peers.rank(),
                            describe(*transfer.operation).c_str());
    }
    if (written - channel.pieces_read.load() == Channel::num_pieces) return;
    const size_t size = transfer.next_size();
    channel.sizes[written % Channel::num_pieces] = transfer.size;
    set_text(channel.sent[written % Channel::num_pieces], *transfer.operation);
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
    check_size(peers, channel, transfer, read % Channel::num_pieces);
    const size_t size = transfer.next_size();
    std::memcpy(static_cast<char*>(transfer.operation->received) + transfer.done,
                channel.pieces[read % Channel::num_pieces].data(), size);
    transfer.done += size;
    channel.pieces_read.store(read + 1);
    peers.notify(transfer.operation->peer);
  }
}

// Advances the transfers as far as possible without waiting. Returns the ranks that the remaining
// transfers are waiting for.
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

size_t bytes_done(const std::vector<Transfer>& transfers) {
  size_t bytes = 0;
  for (const auto& transfer : transfers) bytes += transfer.done;
  return bytes;
}

// Advances the transfers and makes the first waiting transfer visible to the other ranks.
Ranks advance_visibly(Peers& peers, std::vector<Transfer>& transfers, const Operation*& shown) {
  const auto before = bytes_done(transfers);
  const Ranks awaited = advance(peers, transfers);
  if (bytes_done(transfers) != before) peers.restart_clock();
  const auto first = std::find_if(transfers.begin(), transfers.end(),
                                  [](const Transfer& each) { return !each.is_finished(); });
  if (first != transfers.end() && first->operation != shown) {
    shown = first->operation;
    peers.begin(Activity::exchanging, describe(*shown));
  }
  return awaited;
}

}  // namespace

void run_transfers(Peers& peers, const std::vector<Operation>& operations) {
  std::vector<Transfer> transfers;
  for (const auto& operation : operations) {
    transfers.push_back({&operation, chunk_size(operation)});
  }
  const Operation* shown = nullptr;
  peers.wait([&] { return advance_visibly(peers, transfers, shown); });
}

}  // namespace simgpu::nccl
