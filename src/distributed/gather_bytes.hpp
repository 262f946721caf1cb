#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sconce/devices.hpp"
#include "sconce/distributed/process_group.hpp"

namespace sconce::distributed {

/// Returns the device on which a collective needs the bytes. NCCL is the only backend that does not
/// support CPU tensors.
inline torch::Device device_for(const ProcessGroup& group) {
  return group.backend() == "nccl" ? group.device() : cpu();
}

/// Returns the bytes from every rank, in rank order and on the CPU. `bytes` is a uint8 tensor with
/// shape `(n,)` on the CPU, where `n` may differ between ranks.
inline std::vector<torch::Tensor> gather_bytes(const ProcessGroup& group,
                                               const torch::Tensor& bytes) {
  const auto device = device_for(group);
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

/// Returns the text from every rank, in rank order.
inline std::vector<std::string> gather_texts(const ProcessGroup& group, std::string text) {
  const auto size = static_cast<int64_t>(text.size());
  std::vector<std::string> texts;
  for (const auto& each : gather_bytes(group, at::from_blob(text.data(), {size}, at::kByte))) {
    const auto* const begin = each.const_data_ptr<uint8_t>();
    texts.emplace_back(begin, begin + each.numel());
  }
  return texts;
}

/// Returns the integers from every rank, in rank order. Every rank must pass the same number of
/// integers.
inline std::vector<std::vector<int64_t>> gather_integers(const ProcessGroup& group,
                                                         at::IntArrayRef own) {
  const auto all = at::cat(group.all_gather(at::tensor(own).to(device_for(group)))).cpu();
  std::vector<std::vector<int64_t>> ranks;
  const auto* begin = all.const_data_ptr<int64_t>();
  for (const auto* end = begin + all.numel(); begin != end; begin += own.size()) {
    ranks.emplace_back(begin, begin + own.size());
  }
  return ranks;
}

}  // namespace sconce::distributed
