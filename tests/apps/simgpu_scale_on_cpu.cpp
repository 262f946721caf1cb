// The CPU function for the CUDA kernel `__global__ void scale(float* x, float factor, int n)`.
#include <dlfcn.h>

#include <cstddef>

namespace {

struct Launch {
  unsigned grid[3], block[3];
  std::size_t shared_bytes;
};

using Kernel = void (*)(const Launch* launch, void** arguments);
using Register = int (*)(const char* name, Kernel, const std::size_t* sizes, std::size_t count);
using Writes = void* (*)(void* memory, std::size_t bytes);

// Returns null on a real GPU.
template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

void scale_on_cpu(const Launch*, void** arguments) {
  const auto factor = *static_cast<float*>(arguments[1]);
  const auto n = static_cast<std::size_t>(*static_cast<int*>(arguments[2]));
  const auto writes = find<Writes>("simgpu_writes");
  auto* x = static_cast<float*>(writes(*static_cast<float**>(arguments[0]), n * sizeof(float)));
  for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
}

[[maybe_unused]] const bool is_registered = [] {
  const std::size_t sizes[] = {sizeof(float*), sizeof(float), sizeof(int)};
  const auto add = find<Register>("simgpu_register_kernel");
  return add != nullptr && add("scale(float*, float, int)", scale_on_cpu, sizes, 3) == 0;
}();

}  // namespace
