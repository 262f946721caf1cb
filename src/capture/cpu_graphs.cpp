#include "capture/cpu_graphs.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "capture/step_recorder.hpp"

namespace sconce::detail {

namespace {

constexpr size_t max_graphs = 4;
constexpr size_t max_traces = 8;

}  // namespace

CpuGraphs::Graph CpuGraphs::record(const Step& step) {
  Tensors outputs;
  auto recording =
      detail::record([&] { outputs = step(); }, traces_.empty() ? nullptr : &traces_.back());
  reject_reason_ = std::move(recording.reject_reason);
  return {std::move(recording.step), std::move(outputs)};
}

// Returns whether an earlier recording under the same conditions matches this one. If only host
// values differ, the step cannot be captured.
bool CpuGraphs::is_repetition(const StepTrace& trace) {
  std::erase_if(traces_, [](const auto& other) { return !other.conditions.hold(); });
  const std::string* changed = nullptr;
  const auto earlier = std::find_if(traces_.begin(), traces_.end(),
                                    [&](const auto& other) { return trace.is_like(other); });
  const bool is_known = earlier != traces_.end();
  if (is_known) {
    changed = trace.find_changed_value(*earlier);
    traces_.erase(earlier);
  } else if (traces_.size() == max_traces) {
    traces_.erase(traces_.begin());
  }
  traces_.push_back(trace);
  if (changed != nullptr) {
    reject_reason_ = "host values that change from step to step (" + *changed + ")";
  }
  return is_known && changed == nullptr;
}

// Keeps only the recording's trace. Otherwise, the gradients from the recording would stay in
// memory together with the gradients from the next call.
CpuGraphs::Tensors CpuGraphs::run_warmup(const Step& step) {
  if (!can_record()) return step();
  auto graph = record(step);
  if (graph.step != nullptr) traces_.push_back(std::move(graph.step->trace));
  return graph.outputs;
}

CpuGraphs::Graph* CpuGraphs::find_fitting() {
  bool is_gone = false;
  for (auto& graph : graphs_) {
    const Fit fit = graph.step->fit();
    if (fit == Fit::fits) return &graph;
    is_gone |= fit == Fit::gone;
  }
  TORCH_CHECK(!is_gone,
              "sconce::CapturedStep: expected the parameters used during the capture, "
              "got a parameter that no longer exists; capture the new parameters with a new "
              "CapturedStep");
  return nullptr;
}

StepMode CpuGraphs::mode() const {
  if (last_ == nullptr) return StepMode::eager;
  return last_->is_compiled() ? StepMode::compiled : StepMode::replayed;
}

std::string CpuGraphs::mode_reason() const {
  return last_ == nullptr ? "the step is not captured" : last_->reason();
}

// Returns the step that this process votes on: the first step whose variant is not final or, if all
// variants are final, the step that ran last. Therefore, processes with the same captures vote on
// the same step.
CompiledStep* CpuGraphs::voting() const {
  for (const auto& graph : graphs_) {
    if (!graph.runner->is_settled()) return graph.runner.get();
  }
  return last_;
}

// Votes arrive while a step is running and cannot change which variant that step runs. Therefore,
// the next call processes the votes.
void CpuGraphs::take_votes() {
  if (ballot_ == nullptr || ballot_->all_votes.empty()) return;
  const auto votes = std::exchange(ballot_->all_votes, {});
  if (auto* step = voting()) step->choose(votes);
}

void CpuGraphs::vote() {
  if (ballot_ == nullptr) return;
  const bool is_alone = !ballot_->is_shared && last_ != nullptr;
  if (is_alone && !last_->is_settled()) last_->choose({last_->vote()});
  const auto* step = voting();
  ballot_->own = step == nullptr ? StepVote() : step->vote();
}

CpuGraphs::Tensors CpuGraphs::run(const Step& step) {
  if (!can_record()) return step();
  TORCH_CHECK(reject_reason_.empty(),
              "sconce::CapturedStep: expected a step that can be captured, got ", "one with ",
              reject_reason_);
  take_votes();
  auto outputs = replay_or_record(step);
  vote();
  return outputs;
}

CpuGraphs::Tensors CpuGraphs::replay_or_record(const Step& step) {
  if (auto* fitting = find_fitting()) {
    last_ = fitting->runner.get();
    fitting->runner->run();
    for (const auto& output : fitting->outputs) {
      if (output.defined() && !output.is_inference()) output.unsafeGetTensorImpl()->bump_version();
    }
    return fitting->outputs;
  }
  last_ = nullptr;
  auto graph = record(step);
  auto outputs = graph.outputs;
  if (graph.step == nullptr || !is_repetition(graph.step->trace)) return outputs;
  if (graphs_.size() == max_graphs) graphs_.erase(graphs_.begin());
  graph.runner = std::make_unique<CompiledStep>(*graph.step, compiler_);
  graphs_.push_back(std::move(graph));
  return outputs;
}

}  // namespace sconce::detail
