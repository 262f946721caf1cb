#include <cuda_runtime_api.h>
#include <nccl.h>

#include <string>

#include "simgpu/runtime/nccl/failure.hpp"
#include "simgpu/runtime/nccl/group.hpp"
#include "simgpu/runtime/nccl/handles.hpp"
#include "simgpu/runtime/stream.hpp"

// The NCCL functions that exchange data.

namespace simgpu::nccl {

namespace {

ncclResult_t start_operation(const Operation& operation, ncclComm_t comm, cudaStream_t stream) {
  return guarded([&] {
    const auto communicator = find_handle(comm);
    size_of(operation.type);
    if (!is_stream(stream)) throw Failure(ncclInvalidArgument, "no such stream");
    if (operation.peer < 0 || operation.peer >= communicator->ranks()) {
      throw Failure(ncclInvalidArgument, std::string(operation.label) + " names rank " +
                                             std::to_string(operation.peer) + " of " +
                                             std::to_string(communicator->ranks()));
    }
    start({communicator, stream, operation});
  });
}

ncclResult_t start_reduction(Operation operation, ncclRedOp_t op, ncclComm_t comm,
                             cudaStream_t stream) {
  const auto checked = guarded([&] {
    check_reducible(operation.type);
    operation.reduction = find_handle(comm)->reduction(op);
  });
  return checked == ncclSuccess ? start_operation(operation, comm, stream) : checked;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

ncclResult_t ncclAllReduce(const void* sent, void* received, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return start_reduction({Kind::all_reduce, "ncclAllReduce", sent, received, count, type}, op, comm,
                         stream);
}

ncclResult_t ncclReduce(const void* sent, void* received, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return start_reduction({Kind::reduce, "ncclReduce", sent, received, count, type, root}, op, comm,
                         stream);
}

ncclResult_t ncclReduceScatter(const void* sent, void* received, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return start_reduction({Kind::reduce_scatter, "ncclReduceScatter", sent, received, count, type},
                         op, comm, stream);
}

ncclResult_t ncclBroadcast(const void* sent, void* received, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return start_operation({Kind::broadcast, "ncclBroadcast", sent, received, count, type, root},
                         comm, stream);
}

ncclResult_t ncclBcast(void* data, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return ncclBroadcast(data, data, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void* sent, void* received, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return start_operation({Kind::all_gather, "ncclAllGather", sent, received, count, type}, comm,
                         stream);
}

ncclResult_t ncclAlltoAll(const void* sent, void* received, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) {
  return start_operation({Kind::all_to_all, "ncclAlltoAll", sent, received, count, type}, comm,
                         stream);
}

ncclResult_t ncclGather(const void* sent, void* received, size_t count, ncclDataType_t type,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return start_operation({Kind::gather, "ncclGather", sent, received, count, type, root}, comm,
                         stream);
}

ncclResult_t ncclSend(const void* sent, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return start_operation({Kind::send, "ncclSend", sent, nullptr, count, type, peer}, comm, stream);
}

ncclResult_t ncclRecv(void* received, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return start_operation({Kind::receive, "ncclRecv", nullptr, received, count, type, peer}, comm,
                         stream);
}

ncclResult_t ncclGroupStart() {
  begin_group();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  return guarded([] { end_group(); });
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  return guarded([&] {
    check_pointer(scalar);
    *check_pointer(op) = find_handle(comm)->create_premultiplied_sum(scalar, type, residence);
  });
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return guarded([&] { find_handle(comm)->destroy(op); });
}

#pragma GCC visibility pop
}

}  // namespace simgpu::nccl
