#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

namespace profiler {

/// Records from its construction on the operators and the named ranges (`RECORD_USER_SCOPE`) of
/// this thread and of the backward passes that it begins, and where there is a GPU its kernels and
/// copies. LibTorch's profiler may write lines of its own to standard error, as it does in Python;
/// fewer with `KINETO_LOG_LEVEL=7` among the environment's variables. Python:
/// `torch.profiler.profile`.
class Profile {
 public:
  /// @throw c10::Error if another profile of this thread is under way.
  Profile();

  /// Ends the profile, whose records are lost if they were not exported.
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Waits for the GPU, ends the profile and writes the records as JSON, which chrome://tracing and
  /// Perfetto show. The file is whole or not there. Called once.
  /// @throw c10::Error if the profile is over, or naming the file and the cause.
  void export_chrome_trace(const std::filesystem::path& file);

 private:
  bool is_under_way_ = true;
};

}  // namespace profiler

/// Writes a trace of some of a fit's steps, with a range "step" for each and in it "data",
/// "forward", "backward" and "optimizer"; on rank 0. The first step is left out, for it sets up
/// what later ones have. A fit of fewer steps gives those that it has. Warns where there are none,
/// and where the file cannot be written; the fit goes on. Of several fits it traces the first.
/// Python: `PyTorchProfiler` of Lightning.
class StepTrace : public TrainerCallback {
 public:
  /// @throw c10::Error if `steps` is below 1.
  StepTrace(std::filesystem::path file, int64_t steps);

  void on_after_step(Fit& fit) override;
  void on_fit_end(Fit& fit) override;

 private:
  void write();

  std::filesystem::path file_;
  int64_t steps_;
  int64_t recorded_ = 0;
  bool is_over_ = false;
  std::optional<profiler::Profile> profile_ = {};
};

}  // namespace sconce
