#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>
#include <optional>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::data {

/// Copies batches to a device while the loop works on an earlier one: to a GPU from pinned memory,
/// on a stream of its own. To any other device it copies at once.
class CopyStream {
 public:
  /// Lets the current stream of the thread that calls it wait for the copies, and their memory be
  /// used again only after that stream's work. Empty where there is nothing to wait for.
  using Wait = std::function<void()>;

  /// Takes one of LibTorch's streams of that device.
  explicit CopyStream(torch::Device device);

  /// Puts copies on the device in the place of these tensors, those that are elsewhere; they may be
  /// used after a call of what it returns. Python: `tensor.pin_memory().to(device,
  /// non_blocking=True)` under `torch.cuda.stream`, then `wait_stream` and `record_stream`.
  Wait copy(const std::vector<torch::Tensor*>& tensors) const;

 private:
  torch::Device device_;
  std::optional<c10::Stream> stream_ = {};  // of a GPU
};

}  // namespace sconce::data
