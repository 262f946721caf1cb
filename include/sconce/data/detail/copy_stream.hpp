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

/// Copies a batch to a device while the loop is still processing an earlier batch. Copies to a GPU
/// use pinned memory and a separate stream. Copies to non-GPU devices are synchronous.
class CopyStream {
 public:
  /// A function that makes the calling thread's current stream wait for the copies. The function
  /// also prevents the copies' memory from being reused until the work on the current stream is
  /// done. The function is empty if there is nothing to wait for.
  using Wait = std::function<void()>;

  /// Acquires a stream for the device from LibTorch's pool.
  explicit CopyStream(torch::Device device);

  /// Replaces tensors on other devices with copies on this device. Call the returned function
  /// before you use any of the tensors, including tensors that the calling thread's current stream
  /// created on this device.
  /// Python: `tensor.pin_memory().to(device, non_blocking=True)` under `torch.cuda.stream`, then
  /// `wait_stream` and `record_stream`.
  Wait copy(const std::vector<torch::Tensor*>& tensors) const;

  /// Copies all tensors in a batch of any type.
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
  std::optional<c10::Stream> stream_ = {};  // only used for a GPU
};

/// The streams shared by all loops over a loader, including loops in several threads. LibTorch
/// caches memory per stream, so a new stream for each loop would reserve additional memory.
class CopyStreams {
 public:
  /// Returns the stream used for copies to a device. A device without an index refers to the
  /// current GPU. The first call for a GPU acquires a stream from LibTorch's pool. The reference
  /// remains valid for the lifetime of this object.
  const CopyStream& to(torch::Device device);

 private:
  std::mutex mutex_;
  std::map<c10::DeviceIndex, CopyStream> streams_;  // insertion does not move its elements
};

}  // namespace sconce::data::detail
