// Runs custom CUDA kernels and operators:
//     test-simgpu-kernels NAME wrong|right
// The program registers and launches kernels in the same way as code that nvcc generates from a .cu
// file, but the program does not require nvcc. The program prints the computed results. The tests
// run the program on simulated GPUs.
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <string>

#include "capture/step_graph.hpp"

namespace {

using c10::Stream;
using c10::StreamGuard;
using torch::Tensor;

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

// The host function that nvcc would generate for `__global__ void scale(float* x, float factor, int
// n)`.
void scale(float* x, float factor, int n, const Stream& stream);

// A kernel without a registered CPU function.
void unknown() {}

[[maybe_unused]] const bool is_registered = [] {
  using Begin = void** (*)(void*);
  using Register =
      void (*)(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
  const auto add = find<Register>("__cudaRegisterFunction");
  void** binary = find<Begin>("__cudaRegisterFatBinary")(nullptr);
  const std::pair<const char*, const char*> kernels[] = {
      {reinterpret_cast<const char*>(&scale), "_Z5scalePffi"},
      {reinterpret_cast<const char*>(&unknown), "_Z7unknownv"}};
  for (const auto& [stub, name] : kernels) {
    add(binary, stub, nullptr, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  }
  return true;
}();

int launch(const void* stub, void** arguments, const Stream& stream) {
  using Launch = int (*)(const void*, Dim3, Dim3, void**, size_t, void*);
  return find<Launch>("cudaLaunchKernel")(stub, {}, {256}, arguments, 0, stream.native_handle());
}

void scale(float* x, float factor, int n, const Stream& stream) {
  void* arguments[] = {&x, &factor, &n};
  TORCH_CHECK(launch(reinterpret_cast<const void*>(&scale), arguments, stream) == 0);
}

void scale(const Tensor& x, float factor, const Stream& stream) {
  scale(x.mutable_data_ptr<float>(), factor, static_cast<int>(x.numel()), stream);
}

c10::impl::VirtualGuardImpl guard() {
  return c10::impl::VirtualGuardImpl(torch::kCUDA);
}

Stream current_stream() {
  return guard().getStream(torch::Device(torch::kCUDA, 0));
}

Stream another_stream(bool is_right) {
  const auto stream = guard().getStreamFromGlobalPool(torch::Device(torch::kCUDA, 0));
  c10::Event event(torch::kCUDA);
  event.record(current_stream());
  if (is_right) event.block(stream);
  return stream;
}

// Runs a kernel on a stream other than the one on which its memory was allocated.
void kernel(bool is_right) {
  const auto x = torch::full({1000}, 2.0, torch::kCUDA);
  const auto stream = another_stream(is_right);
  scale(x, 3, stream);
  stream.synchronize();
  std::cout << x.sum().item<float>() << '\n';
}

// A replay uses the arguments from the capture but reads the current contents of the memory.
void graph(bool) {
  const auto x = torch::ones({4}, torch::kCUDA);
  const auto stream = another_stream(true);
  const StreamGuard on_stream(stream);
  auto captured = sconce::StepGraph::begin({});
  scale(x, 3, current_stream());
  captured->end();
  std::cout << x.sum().item<float>();
  for (int i = 0; i < 2; ++i) captured->replay();
  std::cout << ' ' << x.sum().item<float>() << '\n';
}

void refused(bool) {
  std::cout << launch(reinterpret_cast<const void*>(&unknown), nullptr, current_stream()) << '\n';
}

Tensor twice_on_cpu(const Tensor& x) {
  TORCH_CHECK(x.is_cpu());
  return x * 2;
}

Tensor twice_on_gpu(const Tensor&) {
  TORCH_CHECK(false, "the CUDA kernel was called");
}

TORCH_LIBRARY(simgpu_kernels, library) {
  library.def("twice(Tensor x) -> Tensor");
  library.impl("twice", torch::kCPU, &twice_on_cpu);
  library.impl("twice", torch::kCUDA, &twice_on_gpu);
}

// Calls an operator from another library. A different stream computes the operator's argument.
void custom_operator(bool is_right) {
  const auto x = torch::full({1000}, 2.0, torch::kCUDA);
  const auto stream = another_stream(is_right);
  const StreamGuard on_stream(stream);
  const auto twice = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("simgpu_kernels::twice", "")
                         .typed<Tensor(const Tensor&)>();
  std::cout << twice.call(x).sum().item<float>() << '\n';
}

const std::map<std::string, std::function<void(bool)>> programs = {
    {"kernel", kernel}, {"graph", graph}, {"refused", refused}, {"operator", custom_operator}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    programs.at(argv[1])(std::strcmp(argv[2], "right") == 0);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
