// Devices: naming the CPU and the GPUs, counting them, and taking one only if it is there.
// Covers: T0.cpu-gpu T1.devices T2.3 T0.num_gpus T1.count T2.6 T0.try T1.try T2.8
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>
#include <string>
#include <type_traits>
#include <vector>

using sconce::repr;

// A device is a name: nobody asks yet whether the machine has it.
// T2.3
torch::Device cpu() {
  return torch::Device("cpu");
}

torch::Device gpu(int i = 0) {
  return torch::Device("cuda:" + std::to_string(i));
}

// T0.num_gpus, T1.count, T2.6
int num_gpus() {
  return static_cast<int>(torch::cuda::device_count());
}

// T0.try, T1.try, T2.8
torch::Device try_gpu(int i = 0) {
  return num_gpus() >= i + 1 ? gpu(i) : cpu();
}

// note: T0 and T2 promise [cpu()] where there is no GPU, and return [].
std::vector<torch::Device> try_all_gpus() {
  std::vector<torch::Device> devices;
  for (int i = 0; i < num_gpus(); ++i) devices.push_back(gpu(i));
  return devices;
}

// This one keeps the promise.
// T1.try
std::vector<torch::Device> try_all_gpus_or_cpu() {
  return num_gpus() > 0 ? try_all_gpus() : std::vector<torch::Device>{cpu()};
}

std::string joined(const std::vector<torch::Device>& devices) {
  std::string text;
  for (const auto device : devices) text += (text.empty() ? "" : ", ") + repr(device);
  return text;
}

int main() {
  // T0.cpu-gpu, T1.devices
  const auto cuda = torch::Device("cuda");
  std::cout << '(' << joined({torch::Device("cpu"), cuda, torch::Device("cuda:1")})
            << ")\n";
  std::cout << '(' << joined({cpu(), gpu(), gpu(1)}) << ")\n";  // T2.3
  // T0.num_gpus, T1.count, T2.6
  std::cout << "Number of available GPUs: " << num_gpus() << '\n';
  // T0.try, T2.8
  std::cout << "First GPU: " << try_gpu() << '\n';
  if (try_gpu().is_cpu()) std::cout << "That is no GPU: there is none.\n";
  std::cout << "Tenth GPU (falls back to CPU): " << try_gpu(10) << '\n';
  std::cout << "Index " << int{gpu(10).index()} << " is the eleventh GPU.\n";
  std::cout << "All GPUs: [" << joined(try_all_gpus()) << "]\n";
  if (try_all_gpus().empty()) std::cout << "No device, where the CPU was promised.\n";
  // T1.try
  std::cout << "All GPUs, or the CPU: [" << joined(try_all_gpus_or_cpu()) << "]\n";

  // note: T1's text writes f'cuda{i}' without the colon, and calls gpu:0 equivalent to gpu: both
  // names are refused. cuda without a number is whichever GPU is current, so it is not cuda:0. And
  // T1's torch.cuda.device('cuda') is a context manager, in C++ a guard, and no device.
  std::cout << "Beyond the cells:\n" << cpu() << ' ' << gpu() << ' ' << gpu(1) << '\n';
  for (const char* name : {"cuda1", "gpu"}) {
    try {
      std::cout << torch::Device(name) << '\n';
    } catch (const c10::Error&) {
      std::cout << name << " is no device\n";
    }
  }
  std::cout << "cuda is cuda:0: " << repr(cuda == gpu(0)) << '\n';
  const bool is_device = std::is_convertible_v<c10::DeviceGuard, torch::Device>;
  std::cout << "a context manager is a device: " << repr(is_device) << '\n';
  const bool are_equal = gpu(1) == sconce::gpu(1) && num_gpus() == sconce::num_gpus() &&
                         try_gpu(10) == sconce::try_gpu(10) &&
                         try_gpu() == sconce::try_gpu() &&
                         try_all_gpus_or_cpu() == sconce::try_all_gpus();
  std::cout << "sconce's own give the same: " << repr(are_equal) << '\n';
}
