#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capture/compiled_step.hpp"
#include "capture/recorded_step.hpp"
#include "sconce/captured_step.hpp"
#include "step_vote.hpp"

namespace sconce::detail {

/// Manages the captures of one step on the CPU. A step has several captures if its calls start with
/// different gradients. With gradient accumulation, for example, the first batch starts without
/// gradients and later batches add to them.
class CpuGraphs {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Step = std::function<Tensors()>;

  /// `compiler` may be null.
  explicit CpuGraphs(StepCompiler* compiler)
      : compiler_(compiler),
        ballot_(compiler == nullptr ? nullptr : std::make_shared<StepBallot>()) {}

  /// Runs the step for the first time, and checks whether it can be captured.
  Tensors run_warmup(const Step& step);

  /// Replays the matching capture. If there is none, runs and records the step. A recording becomes
  /// a capture if an earlier recording contains the same operators and values. This condition is
  /// necessary because the first steps may perform additional work, such as creating the
  /// optimizer's state. Each replay of a capture returns the same tensors.
  /// @throw c10::Error before running anything if an earlier step could not be captured, or if a
  /// parameter no longer exists.
  Tensors run(const Step& step);

  /// Returns true if there are no captures.
  bool empty() const { return graphs_.empty(); }

  /// Returns how the last call ran the step.
  StepMode mode() const;
  std::string mode_reason() const;

  /// Returns the ballot for votes on the captures' variants, or null if there is no compiler.
  const std::shared_ptr<StepBallot>& ballot() const { return ballot_; }

 private:
  struct Graph {
    std::unique_ptr<RecordedStep> step;
    Tensors outputs;
    std::unique_ptr<CompiledStep> runner = {};
  };

  Tensors replay_or_record(const Step& step);
  CompiledStep* voting() const;
  void take_votes();
  void vote();
  Graph* find_fitting();
  Graph record(const Step& step);
  bool is_repetition(const StepTrace& trace);

  StepCompiler* compiler_;
  std::shared_ptr<StepBallot> ballot_;
  CompiledStep* last_ = nullptr;        // the step that ran last; null if the function ran
  std::vector<StepTrace> traces_ = {};  // distinct recordings, newest last
  std::vector<Graph> graphs_ = {};
  std::string reject_reason_ = {};
};

}  // namespace sconce::detail
