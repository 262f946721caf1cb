#include "sconce/report/memory_peaks.hpp"

#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <ostream>
#include <string_view>
#include <thread>

#include "detail/format.hpp"
#include "report/best_effort.hpp"
#include "sconce/cuda/memory.hpp"

namespace sconce {

// Measures for one object while its fit is under way. LibTorch takes plain functions, without
// captures, and calls them in the thread that added them; therefore all watches are in one list. A
// device has one peak, so before one watch resets it, the others read it.
class MemoryPeaks::Watch {
 public:
  explicit Watch(MemoryPeaks& peaks) : peaks_(peaks) {
    const std::scoped_lock lock(mutex_);
    reset();
    cuda::memory_stats(peaks_.device_);  // throws here if it would in each phase
    all_.push_back(this);
    callback_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(on_begin, on_end).scopes({at::RecordScope::USER_SCOPE}));
  }
  ~Watch() {
    const std::scoped_lock lock(mutex_);
    at::removeCallback(callback_);
    std::erase(all_, this);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  static bool is_phase(const at::RecordFunction& range) {
    constexpr std::array<std::string_view, 5> phases = {"data", "forward", "backward", "optimizer",
                                                        "test"};
    return std::find(phases.begin(), phases.end(), range.name()) != phases.end();
  }

  // Of two watches in a thread, each call serves both.
  static std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& range) {
    if (!is_phase(range)) return nullptr;
    const std::scoped_lock lock(mutex_);
    for (Watch* watch : all_) {
      if (watch->thread_ == std::this_thread::get_id()) watch->begin(range);
    }
    return nullptr;
  }

  static void on_end(const at::RecordFunction& range, at::ObserverContext*) {
    const std::scoped_lock lock(mutex_);
    for (Watch* watch : all_) watch->end(range);
  }

  void begin(const at::RecordFunction& range) {
    if (open_ != nullptr) return;
    reset();
    peak_ = 0;
    open_ = &range;
  }

  void end(const at::RecordFunction& range) {
    if (&range != open_) return;
    read();
    open_ = nullptr;
    auto& peaks = peaks_.peaks_;
    const auto known = std::find_if(peaks.begin(), peaks.end(),
                                    [&](const auto& one) { return one.first == range.name(); });
    if (known == peaks.end()) {
      peaks.emplace_back(range.name(), peak_);
    } else {
      known->second = std::max(known->second, peak_);
    }
  }

  void read() {
    if (open_ != nullptr) {
      peak_ = std::max(peak_, cuda::memory_stats(peaks_.device_).max_allocated);
    }
  }

  void reset() const {
    for (Watch* watch : all_) {
      if (watch->peaks_.device_ == peaks_.device_) watch->read();
    }
    cuda::reset_peak_memory_stats(peaks_.device_);
  }

  inline static std::mutex mutex_ = {};
  inline static std::vector<Watch*> all_ = {};

  MemoryPeaks& peaks_;
  std::thread::id thread_ = std::this_thread::get_id();
  at::CallbackHandle callback_ = 0;
  // The current phase, and its peak so far. Ranges inside it belong to it.
  const at::RecordFunction* open_ = nullptr;
  int64_t peak_ = 0;
};

MemoryPeaks::MemoryPeaks(std::ostream& out) : out_(out) {}

MemoryPeaks::~MemoryPeaks() = default;

void MemoryPeaks::on_fit_begin(Fit& fit) {
  if (++fits_ > 1) return;
  device_ = fit.device;
  BestEffort("sconce::MemoryPeaks").run([this] { watch_ = std::make_unique<Watch>(*this); });
}

void MemoryPeaks::on_fit_end(Fit& fit) {
  if (--fits_ > 0) return;
  watch_.reset();
  if (peaks_.empty() || fit.process_group.rank() > 0) return;
  out_ << "peak memory on " << device_;
  for (const auto& [phase, bytes] : peaks_) {
    out_ << (phase == peaks_.front().first ? ": " : ", ") << phase
         << format(" %.1f MiB", static_cast<double>(bytes) / (1 << 20));
  }
  out_ << std::endl;
}

}  // namespace sconce
