#include "sconce/report/memory_peaks.hpp"

#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <memory>
#include <ostream>
#include <string_view>

#include "detail/format.hpp"
#include "report/best_effort.hpp"
#include "sconce/cuda/memory.hpp"

namespace sconce {

// LibTorch takes plain functions, without captures, and calls them in the thread that added them.
// Therefore their state is thread_local.
class MemoryPeaks::Watch {
 public:
  static uint64_t begin(MemoryPeaks& peaks) {
    current_ = &peaks;
    open_ = nullptr;
    return at::addThreadLocalCallback(
        at::RecordFunctionCallback(on_begin, on_end).scopes({at::RecordScope::USER_SCOPE}));
  }

 private:
  static bool is_phase(const at::RecordFunction& range) {
    constexpr std::array<std::string_view, 5> phases = {"data", "forward", "backward", "optimizer",
                                                        "test"};
    return std::find(phases.begin(), phases.end(), range.name()) != phases.end();
  }

  static std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& range) {
    if (open_ != nullptr || !is_phase(range)) return nullptr;
    open_ = &range;
    cuda::reset_peak_memory_stats(current_->device_);
    return nullptr;
  }

  static void on_end(const at::RecordFunction& range, at::ObserverContext*) {
    if (&range != open_) return;
    open_ = nullptr;
    const int64_t peak = cuda::memory_stats(current_->device_).max_allocated;
    auto& peaks = current_->peaks_;
    const auto known = std::find_if(peaks.begin(), peaks.end(),
                                    [&](const auto& one) { return one.first == range.name(); });
    if (known == peaks.end()) {
      peaks.emplace_back(range.name(), peak);
    } else {
      known->second = std::max(known->second, peak);
    }
  }

  inline static thread_local MemoryPeaks* current_ = nullptr;
  // The current phase. Ranges inside it belong to it.
  inline static thread_local const at::RecordFunction* open_ = nullptr;
};

MemoryPeaks::~MemoryPeaks() {
  stop();
}

void MemoryPeaks::stop() {
  if (watch_ != 0) at::removeCallback(std::exchange(watch_, 0));
}

void MemoryPeaks::on_fit_begin(Fit& fit) {
  device_ = fit.device;
  const bool can = BestEffort("sconce::MemoryPeaks").run([this] {
    cuda::reset_peak_memory_stats(device_);
    cuda::memory_stats(device_);
  });
  if (can) watch_ = Watch::begin(*this);
}

void MemoryPeaks::on_fit_end(Fit& fit) {
  stop();
  if (peaks_.empty() || fit.process_group.rank() > 0) return;
  out_ << "peak memory on " << device_;
  for (const auto& [phase, bytes] : peaks_) {
    out_ << (phase == peaks_.front().first ? ": " : ", ") << phase
         << format(" %.1f MiB", static_cast<double>(bytes) / (1 << 20));
  }
  out_ << std::endl;
}

}  // namespace sconce
