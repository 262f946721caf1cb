#include "sconce/cuda/nccl.hpp"

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace sconce::cuda {

bool is_nccl_available() noexcept {
  return false;
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>&, int, int,
                                            std::chrono::milliseconds) {
  TORCH_CHECK(false, "sconce::cuda::make_nccl: expected NCCL, but sconce was built without it");
}

}  // namespace sconce::cuda
