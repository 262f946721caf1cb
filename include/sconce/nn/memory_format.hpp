#pragma once

#include <c10/core/MemoryFormat.h>

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// Converts the parameters, buffers, and existing gradients of `module` to a memory format.
/// `torch::MemoryFormat::ChannelsLast` applies to tensors with four dimensions, `ChannelsLast3d` to
/// tensors with five, and `Contiguous` to all tensors. Only the tensors' memory is replaced, so
/// optimizers can continue to use the same parameter objects. On GPUs, half-precision convolutions
/// run faster in the channels-last format. Convert the batches as well:
/// `batch.contiguous(torch::MemoryFormat::ChannelsLast)`.
/// Python: `module.to(memory_format=torch.channels_last)`.
/// @throw c10::Error if the format is `Preserve`, or if `has_uninitialized_params(module)` is true.
void to_memory_format(torch::nn::Module& module, c10::MemoryFormat format);

}  // namespace sconce::nn
