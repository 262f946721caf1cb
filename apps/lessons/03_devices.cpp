// Devices: naming the CPU and the GPUs, counting them, and taking one only if it is there.
// Covers: T0.cpu-gpu T1.devices T2.3 T0.num_gpus T1.count T2.6 T0.try T1.try T2.8
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>
#include <string>
#include <vector>

using sconce::repr;

std::string list(const std::vector<torch::Device>& devices) {
  std::string text;
  for (const auto device : devices) text += (text.empty() ? "" : ", ") + repr(device);
  return "[" + text + "]";
}

void beyond();

int main() {
  // T0.cpu-gpu, T2.3
  const auto cpu = [] { return torch::Device("cpu"); };
  const auto gpu = [](int i = 0) { return torch::Device("cuda:" + std::to_string(i)); };
  std::cout << list({cpu(), gpu(), gpu(1)}) << '\n';

  // T1.devices
  // note: T1's torch.cuda.device('cuda') is a context manager, in C++ c10::DeviceGuard, and no
  // device.
  std::cout << torch::Device("cpu") << ' ' << torch::Device("cuda") << ' '
            << torch::Device("cuda:1") << '\n';

  // T0.num_gpus, T1.count, T2.6
  const auto num_gpus = [] { return int{torch::cuda::device_count()}; };
  std::cout << "Number of available GPUs: " << num_gpus() << '\n';

  // T0.try, T2.8
  const auto try_gpu = [&](int i = 0) { return num_gpus() >= i + 1 ? gpu(i) : cpu(); };
  const auto try_all_gpus = [&] {
    std::vector<torch::Device> devices;
    for (int i = 0; i < num_gpus(); ++i) devices.push_back(gpu(i));
    return devices;
  };
  std::cout << "First GPU: " << try_gpu() << '\n';
  std::cout << "Tenth GPU (falls back to CPU): " << try_gpu(10) << '\n';
  std::cout << "All GPUs: " << list(try_all_gpus()) << '\n';

  // T1.try
  std::cout << sconce::try_gpu() << ' ' << sconce::try_gpu(10) << ' '
            << list(sconce::try_all_gpus()) << '\n';

  beyond();
}

// Beyond the cells: what the labels promise, and names that the text takes for devices.
void beyond() {
  std::cout << "Beyond the cells:\n";
  std::cout << "the first is a GPU: " << repr(sconce::try_gpu().is_cuda()) << '\n';
  std::cout << "index 10 is GPU number " << sconce::gpu(10).index() + 1 << '\n';
  std::cout << "cuda is cuda:0: " << repr(torch::Device("cuda") == sconce::gpu(0))
            << '\n';
  for (const char* name : {"cuda1", "gpu"}) {
    try {
      std::cout << torch::Device(name) << '\n';
    } catch (const c10::Error&) {
      std::cout << name << " is no device\n";
    }
  }
}
