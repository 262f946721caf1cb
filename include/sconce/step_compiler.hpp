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

/// How a call of a `CapturedStep` runs its step.
enum class StepMode {
  eager,     ///< calls the function
  replayed,  ///< replays what the function did
  compiled   ///< runs compiled code
};

/// Which form of a step a `StepCompiler` keeps.
enum class KeptStep {
  faster,   ///< the faster one, based on ten calls of each
  compiled  ///< the compiled one
};

/// Options for `StepCompiler`.
struct StepCompilerOptions {
  KeptStep keep = KeptStep::faster;  ///< which form of a step to keep
  /// Whether a step waits for the compiler. Otherwise, the step is replayed until compilation
  /// finishes.
  bool wait = false;
};

/// Compiles captured steps. `sconce::program::inductor` creates one. Several captured steps of one
/// thread may share a compiler.
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

  /// Starts compiling the step while the caller continues.
  /// @throw c10::Error if the step cannot be compiled.
  virtual std::unique_ptr<detail::StepCompilation> compile(const detail::RecordedStep& step) = 0;

  /// Returns the form that was kept for the step with this key, `replayed` or `compiled`, or
  /// nothing.
  virtual std::optional<StepMode> kept(const std::string& key) const;

  /// Records which form is kept.
  virtual void keep(const std::string& key, StepMode mode);

  /// Returns a dict of the forms that were kept, by the keys of the steps. A resumed run that loads
  /// it keeps the same forms without measuring again.
  c10::IValue state_dict() const;

  /// Restores the forms that an earlier run kept.
  /// @throw c10::Error if `state` is not a dict returned by `state_dict`.
  void load_state_dict(const c10::IValue& state);

 private:
  StepCompilerOptions options_;
  std::map<std::string, StepMode> kept_ = {};
};

}  // namespace sconce
