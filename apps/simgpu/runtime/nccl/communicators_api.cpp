#include <cuda_runtime_api.h>
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "simgpu/runtime/nccl/exchange.hpp"
#include "simgpu/runtime/nccl/failure.hpp"
#include "simgpu/runtime/nccl/group.hpp"
#include "simgpu/runtime/nccl/handles.hpp"

// The NCCL functions that create and destroy communicators. All of these functions block, which is
// allowed even if the configuration is nonblocking.

namespace simgpu::nccl {

namespace {

void create_communicator(ncclComm_t* handle, const ncclUniqueId& id, int ranks, int rank) {
  check_pointer(handle);
  const auto communicator = std::make_shared<Communicator>(id, ranks, rank);
  connect(communicator);
  *handle = add_handle(communicator);
}

void create_on_each_gpu(ncclComm_t* handles, int count, const int* devices) {
  check_pointer(handles);
  if (count < 1 || count > max_ranks) {
    throw Failure(ncclInvalidArgument, "expected 1 to 64 GPUs, got " + std::to_string(count));
  }
  int current = 0;
  cudaGetDevice(&current);
  const auto id = SharedMemory::create();
  begin_group();
  for (int rank = 0; rank < count; ++rank) {
    cudaSetDevice(devices == nullptr ? rank : devices[rank]);
    create_communicator(&handles[rank], id, count, rank);
  }
  cudaSetDevice(current);
  end_group();
}

// When a communicator is split, each rank sends this data to the other ranks. A new communicator
// uses the `id` of its first rank.
struct SplitRequest {
  int color;
  int key;
  int rank;
  ncclUniqueId id;
};

std::vector<SplitRequest> gather_requests(Communicator& communicator, const SplitRequest& mine) {
  std::vector<SplitRequest> all(static_cast<size_t>(communicator.ranks()));
  const Operation operation{Kind::all_gather, "ncclCommSplit", &mine,
                            all.data(),       sizeof mine,     ncclUint8};
  const auto run = [operation](Peers& peers) { run_collective(peers, operation); };
  const auto done = communicator.submit(operation.label, run);
  communicator.finish(done);
  return all;
}

void split(Communicator& communicator, int color, int key, ncclComm_t* handle) {
  check_pointer(handle);
  const SplitRequest mine{color, key, communicator.rank(), SharedMemory::create()};
  auto members = gather_requests(communicator, mine);
  std::erase_if(members, [&](const SplitRequest& other) { return other.color != color; });
  std::sort(members.begin(), members.end(), [](const SplitRequest& a, const SplitRequest& b) {
    return std::tie(a.key, a.rank) < std::tie(b.key, b.rank);
  });
  if (color == NCCL_SPLIT_NOCOLOR || members.front().rank != mine.rank) {
    SharedMemory::release(mine.id);
  }
  *handle = nullptr;
  if (color == NCCL_SPLIT_NOCOLOR) return;
  const auto me = std::find_if(members.begin(), members.end(), [&](const SplitRequest& member) {
    return member.rank == mine.rank;
  });
  create_communicator(handle, members.front().id, static_cast<int>(members.size()),
                      static_cast<int>(me - members.begin()));
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

ncclResult_t ncclGetVersion(int* version) {
  return guarded([&] { *check_pointer(version) = NCCL_VERSION_CODE; });
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return guarded([&] { *check_pointer(id) = SharedMemory::create(); });
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return guarded([&] { create_communicator(comm, id, ranks, rank); });
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t*) {
  return ncclCommInitRank(comm, ranks, id, rank);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int, ncclUniqueId* ids,
                                      ncclConfig_t*) {
  return guarded([&] { create_communicator(comm, *check_pointer(ids), ranks, rank); });
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  return guarded([&] { create_on_each_gpu(comms, count, devices); });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t*) {
  return guarded([&] { split(*find_handle(comm), color, key, made); });
}

// A null communicator is accepted here, as in NCCL, because LibTorch may abort a communicator
// twice.

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return guarded([&] {
    const auto communicator = find_handle(comm);
    communicator->finish(communicator->submit("ncclCommFinalize", [](Peers&) {}));
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return guarded([&] { take_handle(comm); });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  return guarded([&] { take_handle(comm)->abort(); });
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return guarded([&] { *check_pointer(error) = find_handle(comm)->error(); });
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return guarded([&] { *check_pointer(count) = find_handle(comm)->ranks(); });
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return guarded([&] { *check_pointer(rank) = find_handle(comm)->rank(); });
}

#pragma GCC visibility pop
}

}  // namespace simgpu::nccl
