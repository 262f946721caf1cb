#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "sconce/devices.hpp"
#include "sconce/distributed/process_group.hpp"

namespace sconce::distributed {

/// Returns the device for the bytes of a collective: NCCL alone does not accept CPU tensors.
inline torch::Device device_for(const ProcessGroup& group) {
  return group.backend() == "nccl" ? group.device() : cpu();
}

/// Returns the bytes of every rank, in rank order and on the CPU. `bytes` is a uint8 `(n,)` tensor
/// on the CPU, and `n` may differ between ranks.
inline std::vector<torch::Tensor> gather_bytes(const ProcessGroup& group,
                                               const torch::Tensor& bytes, torch::Device device) {
  const auto options = at::TensorOptions(at::kLong).device(device);
  const auto sizes = at::cat(group.all_gather(at::full({1}, bytes.numel(), options))).cpu();
  auto padded = at::zeros({sizes.max().item<int64_t>()}, bytes.options());
  padded.narrow(0, 0, bytes.numel()).copy_(bytes);
  std::vector<torch::Tensor> all;
  for (const auto& each : group.all_gather(padded.to(device))) {
    const auto size = sizes[static_cast<int64_t>(all.size())].item<int64_t>();
    all.push_back(each.cpu().narrow(0, 0, size));
  }
  return all;
}

}  // namespace sconce::distributed
