#pragma once

#include <c10/core/MemoryFormat.h>

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// Gives a module's parameters and buffers, and the gradients that there are, a memory format:
/// `torch::MemoryFormat::ChannelsLast` those of four dimensions, `ChannelsLast3d` those of five,
/// `Contiguous` all. The parameters stay the same tensors, with new memory: an optimizer goes on
/// with them. On GPUs half-precision convolutions are faster with channels last, and the batches
/// want the format too (`batch.contiguous(torch::MemoryFormat::ChannelsLast)`).
/// Python: `module.to(memory_format=torch.channels_last)`.
/// @throw c10::Error if the format is `Preserve`.
void to_memory_format(torch::nn::Module& module, c10::MemoryFormat format);

}  // namespace sconce::nn
