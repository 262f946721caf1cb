#include "sconce/devices.hpp"

#include <ATen/record_function.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include <limits>

#include "resolve_device.hpp"

namespace sconce {

namespace {

constexpr int max_index = std::numeric_limits<c10::DeviceIndex>::max();

}  // namespace

torch::Device cpu() {
  return torch::Device(c10::kCPU);
}

torch::Device gpu(int index) {
  TORCH_CHECK(index >= 0 && index <= max_index, "sconce::gpu: expected an index from 0 to ",
              max_index, ", got ", index);
  return torch::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

int num_gpus() noexcept {
  // A CPU build of LibTorch has no device guard for CUDA. In a CUDA build, the guard returns 0 if
  // there is no driver.
  if (!c10::impl::hasDeviceGuardImpl(c10::kCUDA)) return 0;
  return c10::impl::getDeviceGuardImpl(c10::kCUDA)->deviceCount();
}

torch::Device try_gpu(int index) {
  TORCH_CHECK(index >= 0, "sconce::try_gpu: expected a non-negative index, got ", index);
  return index < num_gpus() ? gpu(index) : cpu();
}

std::vector<torch::Device> try_all_gpus() {
  const int count = num_gpus();
  if (count == 0) return {cpu()};
  std::vector<torch::Device> devices;
  devices.reserve(static_cast<size_t>(count));
  for (int index = 0; index < count; ++index) devices.push_back(gpu(index));
  return devices;
}

torch::Device resolve_device(torch::Device device, const char* caller) {
  if (device.is_cpu()) return device;
  TORCH_CHECK(device.is_cuda(), caller, ": expected a CPU or CUDA device, got ", device);
  const int count = num_gpus();
  TORCH_CHECK(count > 0 && device.index() < count, caller, ": expected the CPU or one of ", count,
              " GPUs, got ", device);
  return device.has_index() ? device : c10::impl::getDeviceGuardImpl(c10::kCUDA)->getDevice();
}

void synchronize(torch::Device device) {
  device = resolve_device(device, "sconce::synchronize");
  RECORD_USER_SCOPE("sconce::synchronize");
  if (device.is_cuda()) {
    c10::impl::getDeviceGuardImpl(c10::kCUDA)->synchronizeDevice(device.index());
  }
}

}  // namespace sconce
