#include "detail/step_recorder.hpp"

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/record_function.h>
#include <c10/util/ScopeExit.h>

#include <atomic>
#include <memory>
#include <utility>

#include "detail/host_call.hpp"
#include "detail/known_operators.hpp"

namespace sconce::detail {

namespace {

// Below autograd and autocast, and above the backends. LibTorch means it for fake tensors, and has
// no kernels for it in C++.
constexpr auto key = c10::DispatchKey::Fake;

thread_local Recorder* recorder = nullptr;

// Calls in threads that record nothing, which a step has started.
std::atomic<int64_t> calls_of_other_threads = 0;

// Returns the thread's state without the recorder.
ThreadState thread_state() {
  auto thread = ThreadState::now();
  thread.keys.included_ = thread.keys.included_.remove(key);
  return thread;
}

void record_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                 torch::jit::Stack* stack) {
  const auto thread = thread_state();
  const c10::impl::ExcludeDispatchKeyGuard not_within(key);
  keys = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key);
  if (recorder != nullptr) {
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
  if (context == nullptr || recorder == nullptr || function.outputs().empty()) return;
  auto& arguments = static_cast<Arguments&>(*context).values;
  recorder->composite_call(
      {.op = *c10::Dispatcher::singleton().findSchema(*function.operator_name()),
       .keys = c10::DispatchKeySet(c10::DispatchKey::CPU),
       .thread = thread_state(),
       .arguments = std::move(arguments)},
      function.outputs()[0].toTensor());
}

// Watches the operators that compose others in this thread.
class Observer {
 public:
  Observer() = default;
  ~Observer() { at::removeCallback(handle_); }
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

 private:
  at::CallbackHandle handle_ =
      at::addThreadLocalCallback(at::RecordFunctionCallback(begin_operator, end_operator)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .scopes({at::RecordScope::FUNCTION}));
};

// Registers the recorder once, and returns whether nobody else had the key.
bool registers_recorder() {
  auto& dispatcher = c10::Dispatcher::singleton();
  if (dispatcher.hasBackendFallbackForDispatchKey(key)) {
    TORCH_WARN("sconce::CapturedStep: expected the dispatch key ", key, " to be free, and another ",
               "library has it; steps on the CPU run as they are, without replays");
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
  Recorder recording(earlier);
  const int64_t calls_before = calls_of_other_threads;
  {
    recorder = &recording;
    const auto end = c10::make_scope_exit([] { recorder = nullptr; });
    const Observer observer;
    const c10::impl::IncludeDispatchKeyGuard included(key);
    step();
  }
  if (calls_of_other_threads != calls_before) recording.refuse("operators in another thread");
  return recording.finish();
}

bool is_recording() {
  return recorder != nullptr;
}

void record_host_call(std::function<void()> call) {
  auto* const outer = std::exchange(recorder, nullptr);
  const auto back = c10::make_scope_exit([&] { recorder = outer; });
  const c10::impl::ExcludeDispatchKeyGuard not_within(key);
  call();
  outer->host_call(std::move(call));
}

void refuse_recording(std::string reason) {
  if (recorder != nullptr) recorder->refuse(std::move(reason));
}

void refuse_in_capture(std::string_view function) {
  refuse_in_graph(function);
  if (recorder == nullptr) return;
  recorder->refuse("a call of " + std::string(function) + ", which a replay would not repeat");
}

void depend_on(const void* object, Conditions::Holds holds) {
  auto* conditions =
      recorder == nullptr ? CaptureScope::graph_conditions() : &recorder->conditions();
  if (conditions != nullptr) conditions->add(object, std::move(holds));
}

}  // namespace sconce::detail
