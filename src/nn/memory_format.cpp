#include "sconce/nn/memory_format.hpp"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include "sconce/nn/lazy.hpp"

namespace sconce::nn {

namespace {

bool takes(const at::Tensor& tensor, c10::MemoryFormat format) {
  if (format == c10::MemoryFormat::ChannelsLast) return tensor.dim() == 4;
  return format == c10::MemoryFormat::Contiguous || tensor.dim() == 5;
}

void convert(const at::Tensor& tensor, c10::MemoryFormat format) {
  if (!tensor.defined() || !takes(tensor, format)) return;
  tensor.set_data(
      tensor.detach().to(tensor.options(), /*non_blocking=*/false, /*copy=*/false, format));
}

}  // namespace

void to_memory_format(torch::nn::Module& module, c10::MemoryFormat format) {
  TORCH_CHECK(
      format != c10::MemoryFormat::Preserve,
      "sconce::nn::to_memory_format: expected Contiguous, ChannelsLast, or ChannelsLast3d, got ",
      format);
  check_initialized(module, "sconce::nn::to_memory_format");
  const at::NoGradGuard no_grad;
  for (const auto& parameter : module.parameters()) {
    convert(parameter, format);
    convert(parameter.mutable_grad(), format);
  }
  for (const auto& buffer : module.buffers()) convert(buffer, format);
}

}  // namespace sconce::nn
