#include "simgpu/runtime/nccl/handles.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace simgpu::nccl {

namespace {

struct Handles {
  std::mutex mutex;
  std::map<ncclComm_t, std::shared_ptr<Communicator>> communicators;

  auto find(ncclComm_t handle) {
    const auto found = communicators.find(handle);
    if (found == communicators.end()) throw Failure(ncclInvalidArgument, "no such communicator");
    return found;
  }
};

// This object is never destroyed, because a communicator may still be waiting for other ranks when
// the process ends.
Handles& handles() {
  static auto& all = *new Handles;
  return all;
}

}  // namespace

ncclComm_t add_handle(std::shared_ptr<Communicator> communicator) {
  const std::lock_guard lock(handles().mutex);
  const auto handle = reinterpret_cast<ncclComm_t>(communicator.get());
  handles().communicators[handle] = std::move(communicator);
  return handle;
}

std::shared_ptr<Communicator> find_handle(ncclComm_t handle) {
  const std::lock_guard lock(handles().mutex);
  return handles().find(handle)->second;
}

std::shared_ptr<Communicator> take_handle(ncclComm_t handle) {
  const std::lock_guard lock(handles().mutex);
  const auto found = handles().find(handle);
  auto communicator = std::move(found->second);
  handles().communicators.erase(found);
  return communicator;
}

}  // namespace simgpu::nccl
