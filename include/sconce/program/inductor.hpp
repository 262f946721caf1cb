#pragma once

#include <filesystem>
#include <memory>

#include "sconce/step_compiler.hpp"

namespace sconce::program {

/// Options for `inductor`.
struct InductorOptions {
  /// Whether to keep the faster form of the step or to always keep the compiled form.
  KeptStep keep = KeptStep::faster;
  /// Whether to wait for compilation to finish. If false, the step is replayed until the compiler
  /// has finished, so the first compiled step differs from run to run.
  bool wait = false;
  /// Folder for compiled packages. Defaults to `sconce/steps` in the user's cache folder
  /// (`$XDG_CACHE_HOME`, otherwise `~/.cache`). Packages contain machine code, so only the user may
  /// have write access to this folder.
  std::filesystem::path cache_dir = {};
  /// Python interpreter whose PyTorch version matches the LibTorch version. Defaults to the
  /// interpreter of the environment in which LibTorch is installed, or to `python3` if there is no
  /// such environment.
  std::filesystem::path python = {};
};

/// Returns a compiler for steps on the CPU. The compiler runs PyTorch's AOTInductor in a child
/// process:
///
///     CapturedStep step(cpu(), train, {.compiler = program::inductor()});
///
/// The step is replayed until the compiler has finished. The compiler compiles the code between
/// host calls (such as optimizer steps) and stores the result in the cache. Later runs load the
/// compiled code from the cache without starting Python. One step is then run in both forms, and
/// the results are compared. Relative to the norm of each tensor, the results may differ by up to
/// 1e-3 in float32, 5e-2 in bfloat16 and float16, and 1e-6 in float64. The two forms alternate over
/// the next 20 steps, the faster form is kept, and the choice is stored in the cache. Later runs
/// use the stored choice. If the step cannot be compiled, a warning explains why, and the step is
/// replayed.
///
/// Compiled steps sum values in a different order from replayed steps, so results differ in the
/// last bits. As in a replay, random numbers come from LibTorch's generators. The number of threads
/// is the value of `at::get_num_threads` when the step is captured.
///
/// @throw c10::Error if LibTorch does not include the runtime for compiled packages, or if the
/// cache is not a folder owned by the user and writable only by the user.
/// Python: `torch.compile(backend="inductor")`
std::shared_ptr<StepCompiler> inductor(InductorOptions options = {});

}  // namespace sconce::program
