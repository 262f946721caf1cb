#pragma once

#include <filesystem>
#include <memory>

#include "sconce/step_compiler.hpp"

namespace sconce::program {

/// Options of `inductor`.
struct InductorOptions {
  /// Which form of a step to keep.
  KeptStep keep = KeptStep::faster;
  /// Whether a step waits for the compiler. Otherwise it is replayed until the compiler is done,
  /// so that the step from which it is compiled differs from run to run.
  bool wait = false;
  /// Folder of compiled packages. If it is empty, it is `sconce/steps` in the user's folder of
  /// caches (`$XDG_CACHE_HOME`, else `~/.cache`). A package is machine code, so nobody but the user
  /// may write there.
  std::filesystem::path cache_dir = {};
  /// Python with PyTorch of LibTorch's version. If it is empty, it is the one that LibTorch is
  /// installed in, else `python3`.
  std::filesystem::path python = {};
};

/// Returns a compiler for steps on the CPU, by PyTorch's AOTInductor in a child process:
///
///     CapturedStep step(cpu(), train, {.compiler = program::inductor()});
///
/// The step is replayed until the compiler is done. It compiles what lies between calls of the
/// host, such as the steps of optimizers, and stores it in the cache, from which later runs take it
/// without Python. Then one step is run in both forms and compared: they may differ by 1e-3 in
/// float32, 5e-2 in bfloat16 and float16, and 1e-6 in float64, relative to the norm of each
/// tensor. The forms take turns in the next 20 steps, and the one that takes less time is kept.
/// Later runs keep the form that the cache tells. If the step cannot be compiled, a warning gives
/// the reason, and it is replayed.
///
/// Compiled steps add in another order than replayed ones, so results differ in the last bits.
/// Random numbers come from LibTorch's generators, as in a replay. The number of threads is that
/// of `at::get_num_threads` when the step is captured.
///
/// @throw c10::Error if LibTorch has no runtime for compiled packages, or the cache is not a folder
/// of the user to which nobody else can write.
/// Python: `torch.compile(backend="inductor")`
std::shared_ptr<StepCompiler> inductor(InductorOptions options = {});

}  // namespace sconce::program
