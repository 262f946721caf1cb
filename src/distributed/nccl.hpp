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

/// Makes the NCCL backend of one rank of `world_size`, for a process group of LibTorch. The ranks
/// find each other through the store. `sconce::distributed::ProcessGroup` calls this itself.
/// @throw c10::Error if there is no GPU, or if sconce was built without NCCL.
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int world_size, std::chrono::milliseconds timeout);

/// Returns the UUID of a GPU, by which all processes know it, whichever GPUs each of them sees.
/// Empty for the CPU, and if sconce was built without NCCL.
std::string gpu_uuid(c10::Device device);

}  // namespace sconce::distributed
