#include "sconce/captured_step.hpp"

#include <ATen/ops/empty_like.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/alignment.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "amp/no_cast_cache.hpp"
#include "capture/cpu_graphs.hpp"
#include "capture/module_state.hpp"
#include "capture/step_graph.hpp"
#include "capture_scope.hpp"
#include "host_call.hpp"
#include "resolve_device.hpp"
#include "sconce/cuda/memory.hpp"
#include "sconce/devices.hpp"
#include "to_device.hpp"

namespace sconce {

namespace {

constexpr auto step_name = "sconce::CapturedStep";

void depend_on_state(const torch::nn::Module& module) {
  if (!detail::is_capturing()) return;
  detail::depend_on(&module,
                    [state = detail::ModuleState(module)] { return state.is_unchanged(); });
}

void check_batch(const CapturedStep::Tensors& batch) {
  for (size_t i = 0; i < batch.size(); ++i) {
    TORCH_CHECK(batch[i].defined(), step_name,
                ": expected a batch of tensors, got an undefined tensor at position ", i + 1,
                " of ", batch.size());
  }
}

c10::Stream current_stream(torch::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

void wait(const c10::Stream& waiting, const c10::Stream& for_this) {
  c10::Event event(for_this.device_type());
  event.record(for_this);
  event.block(waiting);
}

// Waits for a stream without throwing. At the end of a step or graph, a failed wait must not
// replace the error that the step threw.
void try_to_wait(const c10::Stream& waiting, const c10::Stream& for_this) {
  try {
    wait(waiting, for_this);
  } catch (const c10::Error& error) {
    TORCH_WARN(step_name, ": expected one stream to wait for another stream, got the error: ",
               error.what_without_backtrace());
  }
}

// The strides and alignment also determine which code path a kernel takes, and therefore how it
// rounds.
bool is_like_fresh(const torch::Tensor& tensor) {
  if (tensor.layout() != c10::kStrided || !tensor.has_storage()) return true;
  return tensor.is_non_overlapping_and_dense() &&
         reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % c10::gAlignment == 0;
}

// Rejects nested and concurrent calls to a captured step until the guard is destroyed.
class SingleCallGuard {
 public:
  explicit SingleCallGuard(std::atomic<bool>& in_use) : in_use_(in_use) {
    TORCH_CHECK(!in_use_.exchange(true), step_name,
                ": expected one call at a time, got a call during another call, from another "
                "thread or from the step itself");
  }
  ~SingleCallGuard() { in_use_ = false; }
  SingleCallGuard(const SingleCallGuard&) = delete;
  SingleCallGuard& operator=(const SingleCallGuard&) = delete;

 private:
  std::atomic<bool>& in_use_;
};

}  // namespace

// Used only for GPUs. On the CPU, the conditions are stored with each capture instead.
struct CapturedStep::Graph {
  std::unique_ptr<StepGraph> graph;
  Tensors outputs = {};  // written by the graph
  detail::Conditions conditions = {};
};

CapturedStep::CapturedStep(torch::Device device, Step step, CapturedStepOptions options)
    : device_(resolve_device(device, step_name)),
      step_(std::move(step)),
      options_(std::move(options)) {
  TORCH_CHECK(step_, step_name, ": expected a step, got an empty function");
  TORCH_CHECK(
      options_.num_warmup_iters >= 1, step_name,
      ": expected at least 1 warmup step (an optimizer creates its state during warmup), got ",
      options_.num_warmup_iters);
  for (const auto& module : options_.modules) {
    TORCH_CHECK(module != nullptr, step_name, ": expected modules, got null");
  }
  TORCH_CHECK(options_.compiler == nullptr || device_.is_cpu(), step_name,
              ": expected a CPU device for a compiled step, got ", device_,
              "; steps on a GPU are captured without a compiler");
  if (device_.is_cpu()) {
    cpu_graphs_ = std::make_unique<detail::CpuGraphs>(options_.compiler.get());
    return;
  }
  side_ = c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_);
}

CapturedStep::~CapturedStep() {
  drop_graph();
}

// After this function returns, tensors that the step created, such as gradients and optimizer
// state, may be freed. The memory of these tensors belongs to the side stream, which must not reuse
// the memory until all replays have finished.
void CapturedStep::drop_graph() {
  if (!graph_) return;
  const auto graph = std::move(graph_);
  try_to_wait(*side_, current_stream(device_));
}

CapturedStep::Tensors CapturedStep::operator()(const Tensors& batch) {
  const SingleCallGuard single_call(is_running_);
  TORCH_CHECK(!detail::is_recording(), step_name,
              ": expected no captured step inside another captured step, got a call while "
              "another step is being captured");
  check_batch(batch);
  if (inputs_) return step(batch);
  Tensors inputs;
  for (const auto& tensor : batch) {
    inputs.push_back(at::empty_like(tensor, tensor.options().device(device_)));
  }
  inputs_ = std::move(inputs);
  try {
    return step(batch);
  } catch (...) {
    inputs_.reset();  // the step threw, and later batches may be different
    throw;
  }
}

bool CapturedStep::is_captured() const {
  return graph_ != nullptr || (cpu_graphs_ != nullptr && !cpu_graphs_->empty());
}

StepMode CapturedStep::mode() const {
  if (device_.is_cpu()) return cpu_graphs_->mode();
  return graph_ ? StepMode::replayed : StepMode::eager;
}

std::string CapturedStep::mode_reason() const {
  return device_.is_cpu() ? cpu_graphs_->mode_reason() : "steps on a GPU are not compiled";
}

CapturedStep::Tensors CapturedStep::step(const Tensors& batch) {
  const bool is_like = is_like_first(batch);
  if (graph_ && !graph_->conditions.hold()) {
    drop_graph();
    warmed_up_ = 0;
  }
  if (!is_like || warmed_up_ < options_.num_warmup_iters) {
    const Tensors fresh = like_fresh(batch, is_like);
    Tensors outputs = device_.is_cpu() ? warm_up_on_cpu(fresh, is_like) : run_on_side_stream(fresh);
    if (is_like) ++warmed_up_;
    return outputs;
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    (*inputs_)[i].copy_(batch[i].detach(), /*non_blocking=*/true);
  }
  if (device_.is_cpu()) return cpu_graphs_->run([this] { return run(*inputs_); });
  if (!graph_) capture();
  graph_->graph->replay();
  return graph_->outputs;
}

// Returns the batch on the device for a step that runs eagerly. Copies each tensor whose strides or
// alignment do not match the captured input. Without these copies, the step and a replay could
// produce different results.
CapturedStep::Tensors CapturedStep::like_fresh(const Tensors& batch, bool is_like) const {
  Tensors fresh;
  for (size_t i = 0; i < batch.size(); ++i) {
    auto moved = to_device(batch[i], device_);
    if (is_like && moved.strides() != (*inputs_)[i].strides()) {
      moved = at::empty_like((*inputs_)[i]).copy_(moved);
    }
    fresh.push_back(is_like_fresh(moved) ? moved : moved.clone());
  }
  return fresh;
}

// Returns whether the graph accepts the batch. If the graph does not accept the batch and
// `on_shape_mismatch` is `error`, throws an exception instead.
bool CapturedStep::is_like_first(const Tensors& batch) const {
  bool is_like = batch.size() == inputs_->size();
  TORCH_CHECK(is_like || options_.on_shape_mismatch == ShapeMismatch::run_eagerly, step_name,
              ": expected a batch of ", inputs_->size(), " tensors (as in the first batch), got ",
              batch.size());
  for (size_t i = 0; is_like && i < batch.size(); ++i) {
    const auto& first = (*inputs_)[i];
    is_like = batch[i].sizes() == first.sizes() && batch[i].scalar_type() == first.scalar_type();
    TORCH_CHECK(is_like || options_.on_shape_mismatch == ShapeMismatch::run_eagerly, step_name,
                ": expected tensor ", i, " in the batch to have dtype ", first.scalar_type(),
                " and sizes ", first.sizes(), " (as in the first batch), got dtype ",
                batch[i].scalar_type(), " and sizes ", batch[i].sizes());
  }
  return is_like;
}

// The inputs are detached, so that calling `requires_grad_` on an input does not change the
// caller's tensor or the memory used by replays. The outputs are detached too, because the autograd
// graph would keep AccumulateGrad nodes alive. An AccumulateGrad node stays on the stream on which
// it was created.
CapturedStep::Tensors CapturedStep::run(const Tensors& batch,
                                        detail::Conditions* conditions) const {
  const amp::NoCastCache no_cache;
  const detail::CaptureScope scope(conditions, cpu_graphs_ ? cpu_graphs_->ballot() : nullptr);
  for (const auto& module : options_.modules) depend_on_state(*module);
  Tensors inputs;
  for (const auto& tensor : batch) inputs.push_back(tensor.detach());
  Tensors outputs = step_(inputs);
  scope.end();
  for (auto& output : outputs) {
    if (output.defined()) output = output.detach();
  }
  return outputs;
}

// If possible, records the last warmup step, so that operators that cannot be captured are reported
// before the next call runs any operator.
CapturedStep::Tensors CapturedStep::warm_up_on_cpu(const Tensors& batch, bool is_like) {
  const auto step = [&] { return run(batch); };
  const bool is_last = is_like && warmed_up_ + 1 == options_.num_warmup_iters;
  return is_last ? cpu_graphs_->run_warmup(step) : step();
}

CapturedStep::Tensors CapturedStep::run_on_side_stream(const Tensors& batch) const {
  const auto current = current_stream(device_);
  wait(*side_, current);
  Tensors outputs;
  try {
    const c10::StreamGuard guard(*side_);
    outputs = run(batch);
  } catch (...) {
    // The caller may free the batch while the side stream is still reading it.
    try_to_wait(current, *side_);
    throw;
  }
  wait(current, *side_);
  for (const auto& output : outputs) {
    if (output.defined()) output.record_stream(current);
  }
  return outputs;
}

void CapturedStep::capture() {
  synchronize(device_);
  cuda::empty_cache();  // the graph allocates separate memory that cannot use the cache
  const auto current = current_stream(device_);
  const c10::StreamGuard guard(*side_);
  std::string error;
  try {
    auto made = std::make_unique<Graph>();
    made->graph = StepGraph::begin(options_.generators);
    made->outputs = run(*inputs_, &made->conditions);
    made->graph->end();
    graph_ = std::move(made);
  } catch (const c10::Error& caught) {
    error = caught.what_without_backtrace();
  } catch (const std::exception& caught) {
    error = caught.what();
  }
  // LibTorch 2.11 writes the generator's seed at the start of a capture, and again in each replay.
  if (graph_) return wait(current, *side_);
  try_to_wait(current, *side_);
  TORCH_CHECK(false, step_name, ": expected a step that can be captured, got the error: ", error);
}

}  // namespace sconce
