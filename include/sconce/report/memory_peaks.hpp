#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Measures the peak memory of each phase of a fit: "data", "forward", "backward", "optimizer" and
/// "test". A peak is `max_allocated` of `cuda::memory_stats`, which this resets at the beginning
/// of each phase. It writes one line at the end of the fit, on rank 0. If the memory statistics
/// cannot be read, it warns and measures nothing. A fit within the fit, in the same thread, is part
/// of it. A device has one peak for the whole process, so the peaks include what other threads
/// allocate meanwhile. Python: `torch.cuda.max_memory_allocated`.
class MemoryPeaks : public TrainerCallback {
 public:
  /// The stream must outlive this object.
  explicit MemoryPeaks(std::ostream& out);
  ~MemoryPeaks() override;
  MemoryPeaks(const MemoryPeaks&) = delete;
  MemoryPeaks& operator=(const MemoryPeaks&) = delete;

  /// The peak of each phase in bytes, over all fits so far, in the order of the phases.
  const std::vector<std::pair<std::string, int64_t>>& peaks() const { return peaks_; }

  /// Starts measuring.
  void on_fit_begin(Fit& fit) override;
  /// Stops measuring, and writes the line.
  void on_fit_end(Fit& fit) override;

 private:
  class Watch;  // called at the start and end of the named ranges of this thread

  std::ostream& out_;
  std::vector<std::pair<std::string, int64_t>> peaks_ = {};
  torch::Device device_ = torch::Device(c10::kCPU);
  int fits_ = 0;  // that are under way, one in the other
  std::unique_ptr<Watch> watch_;
};

}  // namespace sconce
