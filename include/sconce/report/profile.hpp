#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

namespace profiler {

/// For the lifetime of this object, records the current thread's operators and named ranges
/// (`RECORD_USER_SCOPE`), including its backward passes, as well as GPU kernels and copies. As in
/// Python, LibTorch's profiler writes log lines to standard error unless the environment contains
/// `KINETO_LOG_LEVEL=7`. There is only one profiler per process, so a second `Profile` cannot start
/// while the first one is running. Use each `Profile` in only one thread.
/// Python: `torch.profiler.profile`.
class [[nodiscard]] Profile {
 public:
  /// Starts recording.
  /// @throw c10::Error if a profile is already running in any thread, including a profile started
  /// by LibTorch's own functions. The running profile is not affected.
  Profile();

  /// Stops recording and discards any records that were not exported.
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Waits for the GPU, stops recording, and writes the records as JSON for chrome://tracing and
  /// Perfetto. The file becomes visible only once it is complete. The file system must have enough
  /// space for two copies of the trace.
  /// @throw c10::Error if this function was called before, or if the file cannot be written.
  void export_chrome_trace(const std::filesystem::path& file);

 private:
  bool is_active_ = true;
};

}  // namespace profiler

/// On rank 0, writes a trace of a fit's first steps. Each step is recorded as a "step" range that
/// contains "data", "forward", "backward", and "optimizer" ranges. The first step is skipped,
/// because it also initializes buffers and caches. If another profile is running, the file cannot
/// be written, or the fit has only one step, the callback warns and the fit continues.
/// Python: Lightning's `PyTorchProfiler`.
class StepTrace : public TrainerCallback {
 public:
  /// Constructs a callback that traces `steps` steps, or fewer if the fit is shorter. Only the
  /// first fit is traced.
  /// @throw c10::Error if `steps` is below 1.
  StepTrace(std::filesystem::path file, int64_t steps);

  /// Starts the trace after the first step and writes it after `steps` more steps.
  void on_after_optimizer_step(Fit& fit) override;
  /// Writes the trace if it has not been written yet.
  void on_fit_end(Fit& fit) override;

 private:
  bool is_traced(const Fit& fit) const;
  void write();

  std::filesystem::path file_;
  int64_t steps_;
  int64_t recorded_ = 0;
  bool is_over_ = false;
  const Fit* fit_ = nullptr;  // the running fit, excluding nested fits
  std::optional<profiler::Profile> profile_ = {};
};

}  // namespace sconce
