#pragma once

#include <vector>

#include "sconce/fwd.hpp"

namespace sconce {

/// Returns the CPU device.
/// Python: `torch.device('cpu')`, d2l's `cpu()`.
torch::Device cpu();

/// Returns the GPU device with the given index. Does not check that the GPU exists, and never
/// initializes CUDA.
/// Python: `torch.device(f'cuda:{index}')`, d2l's `gpu(i)`.
/// @throw c10::Error if `index` is not in [0, 127]. LibTorch stores device indices in 8 bits, so
/// `torch::Device(torch::kCUDA, 256)` would refer to GPU 0.
torch::Device gpu(int index = 0);

/// Returns the number of GPUs that this process can use. Returns 0 if CUDA, a driver, or a visible
/// GPU is missing. Never throws.
/// Python: `torch.cuda.device_count()`, d2l's `num_gpus()`.
int num_gpus() noexcept;

/// Returns `gpu(index)` if this process can use that GPU, and `cpu()` otherwise.
/// Python: d2l's `try_gpu(i)`.
/// @throw c10::Error if `index` is negative.
torch::Device try_gpu(int index = 0);

/// Returns all GPUs that this process can use, or `{cpu()}` if there are none. The returned list is
/// never empty.
/// Python: d2l's `try_all_gpus()`.
std::vector<torch::Device> try_all_gpus();

/// Waits for all work queued on the device to finish. Returns immediately for the CPU, which has no
/// queue. In a profile, each call appears as `sconce::synchronize`, even for the CPU.
/// Python: `torch.cuda.synchronize(device)`.
/// @throw c10::Error if `device` is a GPU that this process cannot use, or is neither a CPU nor a
/// CUDA device.
void synchronize(torch::Device device);

}  // namespace sconce
