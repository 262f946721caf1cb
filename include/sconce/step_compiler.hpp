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

/// How a call of a CapturedStep runs its step.
enum class StepMode {
  eager,     ///< by its function
  replayed,  ///< by a replay of what the function did
  compiled   ///< by compiled code
};

/// Which form of a step a StepCompiler keeps.
enum class KeptStep {
  faster,   ///< the one that took less time in ten calls of each
  compiled  ///< the compiled one
};

/// Options of a StepCompiler.
struct StepCompilerOptions {
  KeptStep keep = KeptStep::faster;  ///< which form of a step to keep
  /// Whether a step waits for the compiler. Otherwise it is replayed until the compiler is done.
  bool wait = false;
};

/// Compiles captured steps. `sconce::program::inductor` makes one. Several captured steps of one
/// thread may share it.
/// Python: the `backend` of `torch.compile`.
class StepCompiler {
 public:
  explicit StepCompiler(StepCompilerOptions options) : options_(options) {}
  virtual ~StepCompiler() = default;
  StepCompiler(const StepCompiler&) = delete;
  StepCompiler& operator=(const StepCompiler&) = delete;

  const StepCompilerOptions& options() const { return options_; }

  /// Starts to compile the step, beside the caller.
  /// @throw c10::Error if the step cannot be compiled.
  virtual std::unique_ptr<detail::StepCompilation> compile(const detail::RecordedStep& step) = 0;

  /// Returns the form of the step with this key that was kept, `replay` or `compiled`, or nothing.
  virtual std::optional<StepMode> kept(const std::string& key) const;

  /// Takes note of the form that is kept.
  virtual void keep(const std::string& key, StepMode mode);

  /// Returns a dict of the forms that were kept, by the keys of the steps. If a resumed run loads
  /// it, the run keeps the same ones and measures nothing again.
  c10::IValue state_dict() const;

  /// Continues with the forms that an earlier run has kept.
  /// @throw c10::Error if it is not a dict of `state_dict`.
  void load_state_dict(const c10::IValue& state);

 private:
  StepCompilerOptions options_;
  std::map<std::string, StepMode> kept_ = {};
};

}  // namespace sconce
