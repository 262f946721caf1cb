#include "capture/step_recorder.hpp"

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/record_function.h>
#include <c10/util/ScopeExit.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "capture/known_operators.hpp"
#include "capture/operator_observer.hpp"
#include "host_call.hpp"

namespace sconce::detail {

namespace {

// In dispatch order, this key comes after autograd and autocast and before the backends. LibTorch
// reserves the key for fake tensors and does not register C++ kernels for it.
constexpr auto key = c10::DispatchKey::Fake;

// The number of unrecorded operator calls made on threads that a step started.
std::atomic<int64_t> calls_of_other_threads = 0;

// Returns the thread's state without the recorder's dispatch key.
ThreadState thread_state() {
  auto thread = ThreadState::now();
  thread.keys.included_ = thread.keys.included_.remove(key);
  return thread;
}

// Records the operator calls of one thread. Host code in other layers reports its calls to this
// object.
class RecordingOfThread final : public StepRecording {
 public:
  explicit RecordingOfThread(const StepTrace* earlier) : recorder(earlier) {}

  void run_host_call(std::function<void()> call) override {
    const c10::impl::ExcludeDispatchKeyGuard not_within(key);
    call();
    recorder.host_call(std::move(call));
  }
  void refuse(std::string reason) override { recorder.refuse(std::move(reason)); }
  Conditions& conditions() override { return recorder.conditions(); }

  Recorder recorder;
};

// Returns this thread's recorder, or null. The cast is safe, because all recordings are started by
// `record`.
Recorder* recorder_of_thread() {
  auto* const recording = StepRecording::in_this_thread();
  return recording == nullptr ? nullptr : &static_cast<RecordingOfThread*>(recording)->recorder;
}

void record_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                 torch::jit::Stack* stack) {
  const auto thread = thread_state();
  const c10::impl::ExcludeDispatchKeyGuard not_within(key);
  keys = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key);
  if (auto* const recorder = recorder_of_thread()) {
    return recorder->call({.op = op, .keys = keys, .thread = thread}, stack);
  }
  ++calls_of_other_threads;
  op.redispatchBoxed(keys, stack);
}

struct Arguments final : at::ObserverContext {
  explicit Arguments(std::vector<c10::IValue> given) : values(std::move(given)) {}

  std::vector<c10::IValue> values;
};

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction& function) {
  if (!has_trait(function.name(), Trait::unseen)) return nullptr;
  const auto given = function.inputs();
  return std::make_unique<Arguments>(std::vector<c10::IValue>(given.begin(), given.end()));
}

void end_operator(const at::RecordFunction& function, at::ObserverContext* context) {
  auto* const recorder = recorder_of_thread();
  if (context == nullptr || recorder == nullptr || function.outputs().empty()) return;
  auto& arguments = static_cast<Arguments&>(*context).values;
  recorder->composite_call(
      {.op = *c10::Dispatcher::singleton().findSchema(*function.operator_name()),
       .keys = c10::DispatchKeySet(c10::DispatchKey::CPU),
       .thread = thread_state(),
       .arguments = std::move(arguments)},
      function.outputs()[0].toTensor());
}

// Registers the recorder on the first call, and returns whether the key was previously unused.
bool registers_recorder() {
  auto& dispatcher = c10::Dispatcher::singleton();
  if (dispatcher.hasBackendFallbackForDispatchKey(key)) {
    TORCH_WARN(
        "sconce::CapturedStep: expected the dispatch key ", key,
        " to be free, but another library uses the key; steps on the CPU run without replays");
    return false;
  }
  static const auto registration = dispatcher.registerFallback(
      key, c10::KernelFunction::makeFromBoxedFunction<&record_call>(), "sconce::CapturedStep");
  return true;
}

}  // namespace

bool can_record() {
  static const bool is_registered = registers_recorder();
  return is_registered;
}

RecordingOutcome record(const std::function<void()>& step, const StepTrace* earlier) {
  RecordingOfThread recording(earlier);
  const int64_t calls_before = calls_of_other_threads;
  {
    StepRecording::exchange(&recording);
    const auto end = c10::make_scope_exit([] { StepRecording::exchange(nullptr); });
    const OperatorObserver composites(begin_operator, end_operator);
    const c10::impl::IncludeDispatchKeyGuard included(key);
    step();
  }
  if (calls_of_other_threads != calls_before) recording.refuse("operators in another thread");
  return recording.recorder.finish();
}

}  // namespace sconce::detail
