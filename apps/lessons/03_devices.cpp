// Devices: naming the CPU and the GPUs, counting them, and taking one only if it is there.
// Covers: T0.cpu-gpu T1.devices T2.3 T0.num_gpus T1.count T2.6 T0.try T1.try T2.8
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <iostream>

using sconce::cpu, sconce::gpu, sconce::repr, sconce::try_gpu;

int main() {
  // A device is a name: nobody asks yet whether the machine has it. Python has two texts for it.
  // note: T1 writes torch.cuda.device('cuda'), which is no device but a context manager, and in
  // its text f'cuda{i}' without the colon.
  for (const auto device : {cpu(), gpu(), gpu(1)}) {
    std::cout << repr(device) << ' ' << device << '\n';
  }

  // note: "gpu:0 and gpu are equivalent" is not so: torch.device('gpu') raises, in C++ too, and
  // cuda without a number is whichever GPU is current, so it is not equal to cuda:0.
  try {
    torch::Device("gpu");
  } catch (const c10::Error&) {
    std::cout << "'gpu' is not a device\n";
  }
  std::cout << repr(torch::Device("cuda") == torch::Device("cuda:0")) << '\n';

  std::cout << sconce::num_gpus() << '\n';

  // note: index 10 is the eleventh GPU; T0 calls it the tenth. T0 and T2 promise [cpu()] where
  // there is no GPU and return []; T1 keeps the promise, and so does sconce.
  std::cout << try_gpu() << ' ' << try_gpu(10) << '\n';
  for (const auto device : sconce::try_all_gpus()) std::cout << repr(device) << '\n';
}
