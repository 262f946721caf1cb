#include "distributed/nccl.hpp"

#include <ATen/cuda/CUDAContextLight.h>

#include <exception>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "repr/format.hpp"
#include "sconce/devices.hpp"

namespace sconce::distributed {
namespace {

// The destructor shuts down the communicators first, like Python's destroy_process_group.
// Otherwise, LibTorch would abort the communicators with a warning. The shutdown waits, without a
// timeout, for collectives that are still running. If the group is destroyed because of an
// exception, other ranks may never reach these collectives, and waiting would hide the exception
// forever. In that case, the communicators are aborted instead. The number of uncaught exceptions
// at construction does not need to be stored, because the constructor runs in a separate thread
// that has no uncaught exceptions.
class Nccl : public c10d::ProcessGroupNCCL {
 public:
  using ProcessGroupNCCL::ProcessGroupNCCL;
  ~Nccl() override {
    try {
      if (std::uncaught_exceptions() > 0) {
        ProcessGroupNCCL::abort();
      } else {
        ProcessGroupNCCL::shutdown();
      }
    } catch (const std::exception& error) {
      TORCH_WARN("sconce::distributed::make_nccl: shutting down a group failed: ", error.what());
    }
  }
};

}  // namespace

bool is_nccl_available() noexcept {
  return true;
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                            int world_size, std::chrono::milliseconds timeout) {
  TORCH_CHECK(num_gpus() > 0, "sconce::distributed::make_nccl: expected a GPU, found none");
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<Nccl>(store, rank, world_size, options);
}

std::string gpu_uuid(c10::Device device) {
  if (!device.is_cuda()) return {};
  std::string text;
  for (const char byte : at::cuda::getDeviceProperties(device.index())->uuid.bytes) {
    text += format("%02x", static_cast<unsigned char>(byte));
  }
  return text;
}

}  // namespace sconce::distributed
