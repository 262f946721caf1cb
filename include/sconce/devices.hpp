#pragma once

#include <vector>

#include "sconce/fwd.hpp"

namespace sconce {

/// Names the CPU. Python: `torch.device('cpu')`, d2l's `cpu()`.
torch::Device cpu();

/// Names the GPU with the given index, whether the machine has it or not; never touches CUDA.
/// Python: `torch.device(f'cuda:{index}')`, d2l's `gpu(i)`.
/// @throw c10::Error if `index` is not in 0 to 127 (LibTorch keeps an index in eight bits, and
/// `torch::Device(torch::kCUDA, 256)` would be GPU 0).
torch::Device gpu(int index = 0);

/// Counts the GPUs that this process can use: 0 without CUDA, a driver or a visible GPU.
/// Never throws. Python: `torch.cuda.device_count()`, d2l's `num_gpus()`.
int num_gpus() noexcept;

/// Returns `gpu(index)` if this process can use that GPU, else `cpu()`. Python: d2l's `try_gpu(i)`.
/// @throw c10::Error if `index` is negative.
torch::Device try_gpu(int index = 0);

/// Returns every GPU that this process can use, or `{cpu()}`: the list is never empty.
/// Python: d2l's `try_all_gpus()`.
std::vector<torch::Device> try_all_gpus();

/// Waits until the device has done all work queued on it; returns at once for the CPU, where
/// nothing is queued. A profile shows each wait as `sconce::synchronize`, those for the CPU too.
/// Python: `torch.cuda.synchronize(device)`.
/// @throw c10::Error if `device` is a GPU that this process cannot use, or of a type that is
/// neither CPU nor CUDA.
void synchronize(torch::Device device);

}  // namespace sconce
