#pragma once

#include <filesystem>
#include <memory>

#include "sconce/step_compiler.hpp"

namespace sconce::program {

/// Options for `inductor`.
struct InductorOptions {
  /// Which form of a step to keep.
  KeptStep keep = KeptStep::faster;
  /// Whether a step waits for the compiler. Otherwise, the step is replayed until the compiler has
  /// finished, so the first compiled step differs from run to run.
  bool wait = false;
  /// Folder for compiled packages. By default, it is `sconce/steps` in the user's cache folder
  /// (`$XDG_CACHE_HOME`, otherwise `~/.cache`). Packages contain machine code, so only the user may
  /// have write access to this folder.
  std::filesystem::path cache_dir = {};
  /// Python interpreter with the PyTorch version of this LibTorch. By default, it is the one that
  /// LibTorch is installed in, otherwise `python3`.
  std::filesystem::path python = {};
};

/// Returns a compiler for steps on the CPU. It runs PyTorch's AOTInductor in a child process:
///
///     CapturedStep step(cpu(), train, {.compiler = program::inductor()});
///
/// The step is replayed until the compiler has finished. The compiler compiles the code between
/// host calls (such as optimizer steps) and stores it in the cache. Later runs load it from there
/// without starting Python. One step is then run in both forms, and the results are compared.
/// Relative to the norm of each tensor, they may differ by 1e-3 in float32, 5e-2 in bfloat16 and
/// float16, and 1e-6 in float64. The two forms take turns over the next 20 steps, and the faster
/// one is kept. Later runs keep the form recorded in the cache. If the step cannot be compiled, a
/// warning explains why, and the step is replayed.
///
/// Compiled steps add numbers in a different order than replayed ones, so results differ in the
/// last bits. As in a replay, random numbers come from LibTorch's generators. The number of threads
/// is the value of `at::get_num_threads` when the step is captured.
///
/// @throw c10::Error if LibTorch has no runtime for compiled packages, or if the cache is not a
/// folder that belongs to the user and that nobody else can write to.
/// Python: `torch.compile(backend="inductor")`
std::shared_ptr<StepCompiler> inductor(InductorOptions options = {});

}  // namespace sconce::program
