#include "simgpu/runtime/nccl/operation.hpp"

namespace simgpu::nccl {

bool sends_to_each(Kind kind) {
  return kind == Kind::reduce_scatter || kind == Kind::all_to_all;
}

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter;
}

int chunks_sent(const Operation& operation, int rank, int ranks) {
  if (operation.kind == Kind::receive) return 0;
  if (operation.kind == Kind::broadcast) return operation.peer == rank ? 1 : 0;
  return sends_to_each(operation.kind) ? ranks : 1;
}

int chunks_received(const Operation& operation, int rank, int ranks) {
  switch (operation.kind) {
    case Kind::send:
      return 0;
    case Kind::reduce:
      return operation.peer == rank ? 1 : 0;
    case Kind::gather:
      return operation.peer == rank ? ranks : 0;
    case Kind::all_gather:
    case Kind::all_to_all:
      return ranks;
    default:
      return 1;
  }
}

std::string describe(const Operation& operation) {
  std::string text = std::string(operation.label) + " of " + std::to_string(operation.count) + " " +
                     name_of(operation.type);
  if (reduces(operation.kind)) text += std::string(", ") + name_of(operation.reduction);
  switch (operation.kind) {
    case Kind::broadcast:
    case Kind::receive:
      return text + " from rank " + std::to_string(operation.peer);
    case Kind::reduce:
    case Kind::gather:
    case Kind::send:
      return text + " to rank " + std::to_string(operation.peer);
    default:
      return text;
  }
}

std::vector<Access> accesses_of(const Operation& operation, int rank, int ranks) {
  std::vector<Access> accesses;
  const auto add = [&](const void* data, int chunks, bool writes) {
    const size_t size = chunk_size(operation) * static_cast<size_t>(chunks);
    if (size > 0) accesses.push_back({data, size, writes});
  };
  add(operation.sent, chunks_sent(operation, rank, ranks), false);
  add(operation.received, chunks_received(operation, rank, ranks), true);
  const auto& factor = operation.reduction.factor;
  if (factor) accesses.push_back({factor.get(), size_of(operation.type), false});
  return accesses;
}

Operation on_host(Operation operation) {
  operation.sent = host_address(operation.sent);
  operation.received = host_address(operation.received);
  auto& factor = operation.reduction.factor;
  if (factor) factor = {factor, host_address(factor.get())};
  return operation;
}

}  // namespace simgpu::nccl
