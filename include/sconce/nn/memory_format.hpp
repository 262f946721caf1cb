#pragma once

#include <c10/core/MemoryFormat.h>

#include "sconce/fwd.hpp"

namespace sconce::nn {

/// Converts the parameters and buffers of a module, and any gradients, to a memory format.
/// `torch::MemoryFormat::ChannelsLast` applies to tensors of four dimensions, `ChannelsLast3d` to
/// those of five, `Contiguous` to all. The parameters stay the same tensors with new memory, so an
/// optimizer can keep using them. On GPUs half-precision convolutions are faster with channels
/// last; convert the batches too (`batch.contiguous(torch::MemoryFormat::ChannelsLast)`).
/// Python: `module.to(memory_format=torch.channels_last)`.
/// @throw c10::Error if the format is `Preserve`, or if `has_uninitialized_params(module)`.
void to_memory_format(torch::nn::Module& module, c10::MemoryFormat format);

}  // namespace sconce::nn
