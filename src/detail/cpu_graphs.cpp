#include "detail/cpu_graphs.hpp"

#include <c10/util/Exception.h>

#include <utility>

#include "detail/step_recorder.hpp"

namespace sconce::detail {

namespace {

constexpr size_t most_graphs = 4;

}  // namespace

CpuGraphs::Graph CpuGraphs::record(const Step& step, const RecordedStep* earlier) {
  Tensors outputs;
  auto recording = detail::record([&] { outputs = step(); }, earlier);
  refusal_ = std::move(recording.refusal);
  return {std::move(recording.step), std::move(outputs)};
}

CpuGraphs::Tensors CpuGraphs::rehearse(const Step& step) {
  if (!can_record()) return step();
  auto [recorded, outputs] = record(step, nullptr);
  if (recorded == nullptr) return outputs;
  // It must not keep the gradients, which would lie beside those of the next call.
  rehearsal_ = std::make_unique<RecordedStep>();
  rehearsal_->inputs = std::move(recorded->inputs);
  rehearsal_->host_values = std::move(recorded->host_values);
  return outputs;
}

CpuGraphs::Graph* CpuGraphs::find_fitting() {
  bool is_gone = false;
  for (auto& graph : graphs_) {
    const Fit fit = graph.step->fit();
    if (fit == Fit::fits) return &graph;
    is_gone |= fit == Fit::gone;
  }
  TORCH_CHECK(!is_gone, "sconce::CapturedStep: expected the parameters that the step was captured ",
              "with, got one that no longer exists; capture a step of the new ones by another "
              "CapturedStep");
  return nullptr;
}

CpuGraphs::Tensors CpuGraphs::run(const Step& step) {
  if (!can_record()) return step();
  TORCH_CHECK(refusal_.empty(), "sconce::CapturedStep: expected a step that can be captured, got ",
              "one with ", refusal_);
  if (auto* fitting = find_fitting()) {
    fitting->step->replay();
    for (const auto& output : fitting->outputs) {
      if (output.defined() && !output.is_inference()) output.unsafeGetTensorImpl()->bump_version();
    }
    return fitting->outputs;
  }
  const auto* earlier = graphs_.empty() ? rehearsal_.get() : graphs_.back().step.get();
  auto graph = record(step, earlier);
  rehearsal_.reset();
  auto outputs = graph.outputs;
  if (graph.step == nullptr) return outputs;
  if (graphs_.size() == most_graphs) graphs_.erase(graphs_.begin());
  graphs_.push_back(std::move(graph));
  return outputs;
}

}  // namespace sconce::detail
