#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

namespace profiler {

/// Records the operators and the named ranges (`RECORD_USER_SCOPE`) of this thread and of its
/// backward passes, and the kernels and copies of GPUs, while the object exists. LibTorch's
/// profiler writes log lines to standard error, as it does in Python, unless the environment has
/// `KINETO_LOG_LEVEL=7`. A process has one profiler, which this refuses to start twice; use the
/// object in one thread. Python: `torch.profiler.profile`.
class [[nodiscard]] Profile {
 public:
  /// @throw c10::Error if a profile is under way already, in any thread, also one of LibTorch's own
  /// functions; that one goes on undisturbed.
  Profile();

  /// Stops recording. Records that were not exported are discarded.
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Waits for the GPU, stops recording, and writes the records as JSON for chrome://tracing and
  /// Perfetto. The file is whole or not there. Its folder needs room for the trace twice.
  /// @throw c10::Error if it was called before, or if the file cannot be written.
  void export_chrome_trace(const std::filesystem::path& file);

 private:
  bool is_under_way_ = true;
};

}  // namespace profiler

/// Writes a trace of the first steps of a fit, on rank 0. Each step is a range "step" with the
/// ranges "data", "forward", "backward" and "optimizer". The very first step is left out, because
/// it also initializes buffers and caches. If another profile is under way, the file cannot be
/// written, or the fit has only one step, this warns and the fit goes on. Python: `PyTorchProfiler`
/// of Lightning.
class StepTrace : public TrainerCallback {
 public:
  /// Traces `steps` steps, or fewer if the fit is shorter. Only the first fit is traced.
  /// @throw c10::Error if `steps` is below 1.
  StepTrace(std::filesystem::path file, int64_t steps);

  /// Starts the trace after the first step, and writes it after `steps` more.
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
  const Fit* fit_ = nullptr;  // under way, and not one within it
  std::optional<profiler::Profile> profile_ = {};
};

}  // namespace sconce
