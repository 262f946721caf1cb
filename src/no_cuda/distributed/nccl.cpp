#include "distributed/nccl.hpp"

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace sconce::distributed {

bool is_nccl_available() noexcept {
  return false;
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>&, int, int,
                                            std::chrono::milliseconds) {
  TORCH_CHECK(false,
              "sconce::distributed::make_nccl: expected NCCL, but sconce was built without it");
}

std::string gpu_uuid(c10::Device) {
  return {};
}

}  // namespace sconce::distributed
