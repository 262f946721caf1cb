#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/recorded_step.hpp"
#include "sconce/step_compiler.hpp"
#include "step_vote.hpp"

namespace sconce::detail {

/// A recorded step that is being compiled.
class StepCompilation {
 public:
  virtual ~StepCompilation() = default;

  /// Returns whether the compiler is done. Does not wait.
  virtual bool is_over() = 0;

  /// Waits for the compiler.
  virtual void wait() = 0;

  /// Returns the calls that replace those of the step, in their order.
  /// @throw c10::Error with the reason if the step could not be compiled.
  virtual std::vector<CompiledCall> take() = 0;

  /// Returns a text that is the same for the same step on the same machine.
  virtual const std::string& key() const = 0;
};

/// Runs a recorded step by a replay or by compiled code, whichever is better.
class CompiledStep {
 public:
  /// `compiler` may be null.
  CompiledStep(RecordedStep& step, StepCompiler* compiler);

  /// Runs the step once.
  void run();

  bool is_compiled() const { return state_ == State::compiled; }

  /// Returns whether the step keeps its form.
  bool is_settled() const { return state_ == State::compiled || state_ == State::replay; }

  /// Returns what this process tells the others about the form.
  StepVote vote() const;

  /// Takes the next step to a form, which depends on the votes of all processes alone. Those of a
  /// single process include only its own. Does nothing as long as one of them is undecided.
  void choose(const StepVotes& votes);

  /// Returns why the step runs as it does.
  const std::string& reason() const { return reason_; }

 private:
  enum class State { compiling, comparing, compared, timing, timed, replay, compiled };

  // What a comparison of both forms has found.
  struct Finding {
    std::string reason = {};  // against the compiled code
    bool is_finite = true;    // whether all values that were compared are
  };

  void take();
  void compare();
  RecordedStep::Calls compared(Finding& finding) const;
  void compare(const CompiledCall& part, Finding& finding) const;
  void end_comparison();
  void time();
  void keep(StepMode mode, std::string reason);
  void settle(StepMode mode, std::string reason);
  void fall_back(const std::string& reason);

  RecordedStep& step_;
  StepCompiler* compiler_;
  State state_ = State::replay;
  std::string reason_ = "no compiler was given";
  std::unique_ptr<StepCompilation> compilation_ = {};
  RecordedStep::Calls compiled_ = {};
  int comparisons_ = 0;
  std::optional<StepMode> preferred_ = {};  // that needs no timing
  std::vector<double> replayed_seconds_ = {};
  std::vector<double> compiled_seconds_ = {};
};

}  // namespace sconce::detail
