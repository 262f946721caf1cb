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

  /// Returns whether the compiler has finished, without waiting for it.
  virtual bool is_over() = 0;

  /// Waits for the compiler to finish.
  virtual void wait() = 0;

  /// Returns the compiled calls that replace calls in the step, in order.
  /// @throw c10::Error with the reason if the step could not be compiled.
  virtual std::vector<CompiledCall> take() = 0;

  /// Returns a key that identifies this step on this machine.
  virtual const std::string& key() const = 0;
};

/// Chooses between replaying a recorded step and running its compiled code, and runs the chosen
/// variant of the step.
class CompiledStep {
 public:
  /// `compiler` may be null.
  CompiledStep(RecordedStep& step, StepCompiler* compiler);

  /// Runs the step once.
  void run();

  bool is_compiled() const { return state_ == State::compiled; }

  /// Returns whether the step's variant is final.
  bool is_settled() const { return state_ == State::compiled || state_ == State::replay; }

  /// Returns this process's vote on the variant, which is sent to the other processes.
  StepVote vote() const;

  /// Advances the choice of a variant based only on the votes of all processes. A single process
  /// passes only its own vote. Does nothing while any process is undecided.
  void choose(const StepVotes& votes);

  /// Returns the reason for the step's current variant.
  const std::string& reason() const { return reason_; }

 private:
  enum class State { compiling, comparing, compared, timing, timed, replay, compiled };

  // The result of comparing the compiled variant with the replayed variant.
  struct Finding {
    std::string reason = {};  // why the code is rejected; empty if it is accepted
    bool is_finite = true;    // whether all compared values are finite
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
  std::string reason_ = "no compiler was specified";
  std::unique_ptr<StepCompilation> compilation_ = {};
  RecordedStep::Calls compiled_ = {};
  int comparisons_ = 0;
  std::optional<StepMode> preferred_ = {};  // the variant to keep without timing, if any
  std::vector<double> replayed_seconds_ = {};
  std::vector<double> compiled_seconds_ = {};
};

}  // namespace sconce::detail
