#include "program/operator_observer.hpp"

#include <ATen/Context.h>
#include <ATen/core/enum_tag.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/ScopeExit.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "capture/known_operators.hpp"
#include "capture/operator_observer.hpp"
#include "program/refusals.hpp"

namespace sconce::program::detail {

namespace {

// The recording state of one thread.
struct ObservedRun {
  Tracer& tracer;
  OperatorNames& opened;
  int depth = 0;                           // number of nested recorded operators
  c10::OperatorName outermost = {"", ""};  // the outermost of these operators
  std::exception_ptr error = {};           // the first; LibTorch ignores exceptions in observers
};
thread_local ObservedRun* recording = nullptr;

// The number of unrecorded operator calls made on threads that a recorded function started.
std::atomic<int64_t> calls_of_other_threads = 0;

// An operator call in progress.
struct Running final : at::ObserverContext {
  enum class Kind { nested, recorded, composite };

  explicit Running(Kind what) : kind(what) {}

  Kind kind;
  std::vector<c10::IValue> given = {};          // for a composite operator
  std::optional<Tracer::Running> call = {};     // for a recorded operator
  std::optional<at::Tensor> random_state = {};  // for an operator that may draw random numbers
};

c10::OperatorHandle operator_of(const at::RecordFunction& function) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      function.operator_name()->name.c_str(), function.operator_name()->overload_name.c_str());
}

// Returns whether autocast may cast the operator's arguments.
bool is_cast(const c10::OperatorHandle& op) {
  using c10::DispatchKey;
  for (const auto key : {DispatchKey::AutocastCPU, DispatchKey::AutocastCUDA}) {
    if (!c10::impl::tls_is_dispatch_key_excluded(key) && op.hasKernelForDispatchKey(key))
      return true;
  }
  return false;
}

// LibTorch's attention compares its inputs with aten::equal. If both arguments are the same tensor,
// the result does not depend on the tensor's values.
bool compares_with_itself(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  return op.schema().name() == "aten::equal" &&
         arguments[0].toTensor().is_same(arguments[1].toTensor());
}

bool is_composite(const c10::OperatorHandle& op) {
  if (sconce::detail::has_trait(op.schema().name(), sconce::detail::Trait::unseen)) return false;
  return is_cast(op) || recording->opened.contains(op.operator_name());
}

at::Tensor random_state_of(c10::Device device) {
  auto generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

void check_random_state(const at::Tensor& before, c10::Device device, const std::string& place) {
  const auto now = random_state_of(device);
  if (std::memcmp(before.const_data_ptr(), now.const_data_ptr(), before.nbytes()) != 0) {
    reject_random(place);
  }
}

// Runs the body of an observer unless an earlier body threw an error. After an error, the rest of
// the recorded function is not observed.
template <class F>
void unless_failed(const F& f) {
  if (recording->error) return;
  try {
    f();
  } catch (...) {
    recording->error = std::current_exception();
  }
}

void begin_recorded(Running& running, const c10::OperatorHandle& op,
                    c10::ArrayRef<c10::IValue> arguments) {
  running.call = recording->tracer.begin(op, arguments);
  if (op.hasTag(at::Tag::nondeterministic_seeded)) {
    running.random_state = random_state_of(recording->tracer.device());
  }
}

void end_recorded(Running& running, c10::ArrayRef<c10::IValue> results) {
  auto& tracer = recording->tracer;
  if (running.random_state) {
    check_random_state(*running.random_state, tracer.device(), tracer.here(running.call->call.op));
  }
  tracer.end(*std::move(running.call), results);
}

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction& function) {
  if (!function.operator_name()) return nullptr;  // this is a scope, not an operator
  if (recording == nullptr) {
    ++calls_of_other_threads;
    return nullptr;
  }
  const auto op = operator_of(function);
  const c10::ArrayRef<c10::IValue> arguments(function.inputs().data(), function.inputs().size());
  if (recording->depth == 0) recording->outermost = op.operator_name();
  if (recording->depth > 0 || compares_with_itself(op, arguments)) {
    if (is_cast(op)) recording->opened.insert(recording->outermost);
    ++recording->depth;
    return std::make_unique<Running>(Running::Kind::nested);
  }
  if (is_composite(op)) {
    auto running = std::make_unique<Running>(Running::Kind::composite);
    running->given = arguments.vec();
    return running;
  }
  ++recording->depth;
  auto running = std::make_unique<Running>(Running::Kind::recorded);
  unless_failed([&] { begin_recorded(*running, op, arguments); });
  return running;
}

// Makes a backward pass on a GPU run in the thread that starts it, instead of in a separate thread
// for that GPU.
struct BackwardInThisThread {
  BackwardInThisThread() { state.set_multithreading_enabled(false); }
  ~BackwardInThisThread() { state.set_multithreading_enabled(before); }
  BackwardInThisThread(const BackwardInThisThread&) = delete;
  BackwardInThisThread& operator=(const BackwardInThisThread&) = delete;

  c10::AutogradState& state = c10::AutogradState::get_tls_state();
  bool before = state.get_multithreading_enabled();
};

void end_operator(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr || recording == nullptr) return;
  auto& running = static_cast<Running&>(*context);
  if (running.kind != Running::Kind::composite) --recording->depth;
  const auto op = operator_of(function);
  const bool has_thrown = function.outputs().size() != op.schema().returns().size();
  if (has_thrown || running.kind == Running::Kind::nested) return;
  const c10::ArrayRef<c10::IValue> results(function.outputs().data(), function.outputs().size());
  unless_failed([&] {
    if (running.kind == Running::Kind::recorded) return end_recorded(running, results);
    // Either the operator computed the result itself, or it returned an argument.
    if (recording->tracer.knows(results)) return;
    recording->tracer.end(recording->tracer.begin(op, running.given), results);
  });
}

}  // namespace

bool observe_operators(Tracer& tracer, OperatorNames& opened,
                       const std::function<void()>& function) {
  TORCH_CHECK(recording == nullptr, record_error_prefix,
              "expected no active recording in this thread,", " got a nested call");
  ObservedRun observed_run{tracer, opened};
  const size_t opened_before = opened.size();
  recording = &observed_run;
  const auto restore = c10::make_scope_exit([] { recording = nullptr; });
  const int64_t before = calls_of_other_threads;
  {
    const at::RecordFunctionGuard enabled(true);
    const sconce::detail::OperatorObserver observer(begin_operator, end_operator);
    const BackwardInThisThread backward;
    function();
  }
  if (opened.size() != opened_before) return false;
  if (observed_run.error) std::rethrow_exception(observed_run.error);
  TORCH_CHECK(
      calls_of_other_threads == before, record_error_prefix,
      "expected operators in the thread that calls record, got operators in another thread; run "
      "the whole computation in one thread, and record the network without DataParallel");
  return true;
}

}  // namespace sconce::program::detail
