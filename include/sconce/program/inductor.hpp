#pragma once

#include <filesystem>
#include <memory>

#include "sconce/step_compiler.hpp"

namespace sconce::program {

/// Options for `inductor`.
struct InductorOptions {
  /// Whether to keep whichever step variant is faster or always keep the compiled variant.
  KeptStep keep = KeptStep::faster;
  /// Whether to wait for compilation to finish. If false, the step is replayed until the compiler
  /// has finished, so the point at which compiled steps begin varies from run to run.
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
/// compiled code from the cache without starting Python. When compiled code becomes available, one
/// step is run in both variants (replayed and compiled), and the results are compared. Relative to
/// each tensor's norm, the results may differ by up to 1e-3 in float32, 5e-2 in bfloat16 and
/// float16, and 1e-6 in float64. The two variants alternate over the next 20 steps. The faster
/// variant is kept, and the choice is cached for later runs. If the step cannot be compiled, a
/// warning explains why, and the step is replayed.
///
/// Compiled steps sum values in a different order from replayed steps, so results differ in the
/// last bits. As during a replay, random numbers come from LibTorch's generators. The thread count
/// is the value of `at::get_num_threads` at capture time.
///
/// @throw c10::Error if LibTorch does not include the runtime for compiled packages, or if the
/// cache is not a folder owned by the user and writable only by the user.
/// Python: `torch.compile(backend="inductor")`
std::shared_ptr<StepCompiler> inductor(InductorOptions options = {});

}  // namespace sconce::program
