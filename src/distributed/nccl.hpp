#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace sconce::distributed {

/// Creates the NCCL backend for one of `world_size` ranks, for use in a LibTorch process group. The
/// ranks find each other through the store. `sconce::distributed::ProcessGroup` calls this
/// function.
/// @throw c10::Error if there is no GPU, or if sconce was built without NCCL.
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int world_size, std::chrono::milliseconds timeout);

/// Returns the UUID of a GPU. The UUID is the same in all processes, regardless of which GPUs are
/// visible to them. Returns an empty string for the CPU, or if sconce was built without NCCL.
std::string gpu_uuid(c10::Device device);

}  // namespace sconce::distributed
