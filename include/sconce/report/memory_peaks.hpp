#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Measures the most memory that a fit has on its device in each phase: "data", "forward",
/// "backward", "optimizer" and "test", the Trainer's named ranges; a GPU's in tensors, on the CPU
/// that of the process (see `cuda::memory_stats`). Resets the device's peak at the beginning of
/// each phase, waits for nothing, and writes a line at the end of the fit, on rank 0. Where the
/// system does not tell, it warns and measures nothing.
class MemoryPeaks : public TrainerCallback {
 public:
  /// The stream must outlive this.
  explicit MemoryPeaks(std::ostream& out) : out_(out) {}
  ~MemoryPeaks() override;
  MemoryPeaks(const MemoryPeaks&) = delete;
  MemoryPeaks& operator=(const MemoryPeaks&) = delete;

  /// Bytes by phase, in the order in which they came first, of all fits so far.
  const std::vector<std::pair<std::string, int64_t>>& peaks() const { return peaks_; }

  void on_fit_begin(Fit& fit) override;
  void on_fit_end(Fit& fit) override;

 private:
  class Watch;  // hears of the ranges of this thread

  void stop();

  std::ostream& out_;
  std::vector<std::pair<std::string, int64_t>> peaks_ = {};
  torch::Device device_ = torch::Device(c10::kCPU);
  uint64_t watch_ = 0;  // 0: none
};

}  // namespace sconce
