#include "sconce/cuda/device_properties.hpp"

#include <c10/util/Exception.h>

namespace sconce::cuda {

DeviceProperties get_device_properties(torch::Device device) {
  TORCH_CHECK(false, "sconce::cuda::get_device_properties: expected a GPU, got ", device,
              " (sconce was built without CUDA)");
}

}  // namespace sconce::cuda
