#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "sconce/fwd.hpp"

namespace c10 {
struct IValue;
}  // namespace c10

namespace sconce {

namespace detail {
class StepCompilation;  // in src/
struct RecordedStep;    // in src/
}  // namespace detail

/// How a call to a `CapturedStep` runs the step.
enum class StepMode {
  eager,     ///< calls the function
  replayed,  ///< replays the recorded operators
  compiled   ///< runs compiled code
};

/// The variant of a step that a `StepCompiler` keeps.
enum class KeptStep {
  faster,   ///< the faster variant, based on ten calls to each variant
  compiled  ///< the compiled variant
};

/// Options for `StepCompiler`.
struct StepCompilerOptions {
  KeptStep keep = KeptStep::faster;  ///< the variant of a step to keep
  /// Whether to wait for compilation to finish. If false, the step is replayed until compilation
  /// finishes.
  bool wait = false;
};

/// Base class for captured-step compilers. To create a compiler, call
/// `sconce::program::inductor`. Several captured steps in the same thread may share a compiler.
///
///     CapturedStep step(cpu(), function, {.compiler = program::inductor()});
///
/// Python: the `backend` of `torch.compile`.
class StepCompiler {
 public:
  explicit StepCompiler(StepCompilerOptions options) : options_(options) {}
  virtual ~StepCompiler() = default;
  StepCompiler(const StepCompiler&) = delete;
  StepCompiler& operator=(const StepCompiler&) = delete;

  const StepCompilerOptions& options() const { return options_; }

  /// Starts compiling the step in the background.
  /// @throw c10::Error if the step cannot be compiled.
  virtual std::unique_ptr<detail::StepCompilation> compile(const detail::RecordedStep& step) = 0;

  /// Returns which variant of the step with the given key was kept (`replayed` or `compiled`), or
  /// `std::nullopt` if neither variant was kept.
  virtual std::optional<StepMode> kept(const std::string& key) const;

  /// Records which variant of the step is kept.
  virtual void keep(const std::string& key, StepMode mode);

  /// Returns a dict that maps each step's key to the variant that was kept. A resumed run that
  /// loads this dict keeps the same variants without measuring again.
  c10::IValue state_dict() const;

  /// Restores an earlier run's choice of variants.
  /// @throw c10::Error if `state` is not a dict returned by `state_dict`.
  void load_state_dict(const c10::IValue& state);

 private:
  StepCompilerOptions options_;
  std::map<std::string, StepMode> kept_ = {};
};

}  // namespace sconce
