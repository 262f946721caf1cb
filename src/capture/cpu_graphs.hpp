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

/// The captures of one step on the CPU. There are several if the step meets different gradients, as
/// the first and the later of the batches whose gradients add up do.
class CpuGraphs {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Step = std::function<Tensors()>;

  /// `compiler` may be null.
  explicit CpuGraphs(StepCompiler* compiler)
      : compiler_(compiler),
        ballot_(compiler == nullptr ? nullptr : std::make_shared<StepBallot>()) {}

  /// Runs the step, and finds out whether it can be captured. The first call.
  Tensors rehearse(const Step& step);

  /// Replays the capture that fits, or else runs and records the step. The recording is a capture
  /// if an earlier one had the same operators and values: the first steps may do more than the
  /// later ones, as to make the states of an optimizer. Each replay of a capture returns the same
  /// tensors.
  /// @throw c10::Error, before anything is run, if an earlier step was one that cannot be captured,
  /// or if a parameter no longer exists.
  Tensors run(const Step& step);

  /// Returns whether there is a capture.
  bool empty() const { return graphs_.empty(); }

  /// Returns how the last call ran the step, and why.
  StepMode mode() const;
  std::string mode_reason() const;

  /// Returns what carries the votes about the forms of the captures, or null without a compiler.
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
  CompiledStep* last_ = nullptr;        // that ran; null if the last call ran the function
  std::vector<StepTrace> traces_ = {};  // of recordings that differ, the last one at the end
  std::vector<Graph> graphs_ = {};
  std::string refusal_ = {};
};

}  // namespace sconce::detail
