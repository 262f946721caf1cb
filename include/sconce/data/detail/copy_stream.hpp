#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "sconce/fwd.hpp"
#include "sconce/nn/tensor_tree.hpp"

namespace sconce::data::detail {

/// Copies batches to a device while the loop works on an earlier batch. Copies to a GPU go through
/// pinned memory on a separate stream. Copies to any other device are made at once.
class CopyStream {
 public:
  /// Function that makes the current stream of the calling thread wait for the copies. It also
  /// keeps their memory from being reused before the work of that stream is done. Empty if there is
  /// nothing to wait for.
  using Wait = std::function<void()>;

  /// Takes one of LibTorch's streams of the device.
  explicit CopyStream(torch::Device device);

  /// Replaces the tensors that are on another device by copies on this device. All tensors may be
  /// used after a call of the returned function, those that were on the device already too, which
  /// the calling thread's current stream has made. Python:
  /// `tensor.pin_memory().to(device, non_blocking=True)` under `torch.cuda.stream`, then
  /// `wait_stream` and `record_stream`.
  Wait copy(const std::vector<torch::Tensor*>& tensors) const;

  /// The same for all tensors in a batch of any type.
  template <class Batch>
  Wait copy_batch(Batch& batch) const {
    std::vector<torch::Tensor*> tensors;
    nn::for_each_tensor(batch, [&](torch::Tensor& tensor) {
      if (tensor.defined()) tensors.push_back(&tensor);
    });
    return copy(tensors);
  }

 private:
  torch::Device device_;
  std::optional<c10::Stream> stream_ = {};  // for a GPU
};

/// The streams of all loops over a loader, also of loops in several threads. LibTorch caches memory
/// for each stream, so a new stream in each loop would reserve new memory.
class CopyStreams {
 public:
  /// Returns the stream to a device: without an index to the current GPU. The first call for a GPU
  /// takes one of LibTorch's streams. The reference is valid as long as this object.
  const CopyStream& to(torch::Device device);

 private:
  std::mutex mutex_;
  std::map<c10::DeviceIndex, CopyStream> of_device_;  // its elements stay where they are
};

}  // namespace sconce::data::detail
