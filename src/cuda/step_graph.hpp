#pragma once

#include <ATen/core/Generator.h>

#include <memory>
#include <vector>

namespace sconce::cuda {

/// A CUDA graph of what is queued on the current stream between its beginning and `end`. Where it
/// goes without an `end` the capture ends too, and the stream, the allocators and the generators
/// are usable again; that has to be while the stream is current.
class StepGraph {
 public:
  /// Begins to capture on the current stream, which is none of the default ones.
  /// @throw c10::Error if sconce was built without CUDA.
  static std::unique_ptr<StepGraph> begin(const std::vector<at::Generator>& generators);
  virtual ~StepGraph() = default;

  /// Ends the capture.
  virtual void end() = 0;

  /// Queues what was captured on the current stream.
  virtual void replay() = 0;
};

}  // namespace sconce::cuda
