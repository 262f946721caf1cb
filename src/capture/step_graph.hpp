#pragma once

#include <ATen/core/Generator.h>

#include <memory>
#include <vector>

namespace sconce {

/// A CUDA graph of the work that is queued on the current stream between `begin` and `end`. If the
/// object is destroyed without a call to `end`, the destructor stops the capture and restores the
/// stream, the allocators, and the generators to a usable state. The stream must still be current
/// at that point.
class StepGraph {
 public:
  /// Starts capturing on the current stream, which must not be a default stream.
  /// @throw c10::Error if sconce was built without CUDA.
  static std::unique_ptr<StepGraph> begin(const std::vector<at::Generator>& generators);
  virtual ~StepGraph() = default;

  /// Ends the capture.
  virtual void end() = 0;

  /// Queues the captured work on the current stream.
  virtual void replay() = 0;
};

}  // namespace sconce
