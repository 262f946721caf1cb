#include "simgpu/runtime/nccl/refusal.hpp"

#include <string>

#include "simgpu/runtime/nccl/failure.hpp"

namespace simgpu::nccl {

int refuse(const char* function) {
  return fail({ncclInvalidUsage, std::string(function) + " is not supported"});
}

}  // namespace simgpu::nccl
