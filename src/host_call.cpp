#include "host_call.hpp"

#include <c10/util/ScopeExit.h>

namespace sconce::detail {

namespace {

thread_local StepRecording* current = nullptr;

}  // namespace

StepRecording* StepRecording::in_this_thread() {
  return current;
}

StepRecording* StepRecording::exchange(StepRecording* recording) {
  return std::exchange(current, recording);
}

bool is_recording() {
  return current != nullptr;
}

void record_host_call(std::function<void()> call) {
  auto* const recording = StepRecording::exchange(nullptr);
  const auto restore = c10::make_scope_exit([&] { StepRecording::exchange(recording); });
  recording->run_host_call(std::move(call));
}

void reject_recording(std::string reason) {
  if (current != nullptr) current->refuse(std::move(reason));
}

void check_not_capturing(std::string_view function) {
  check_not_capturing_graph(function);
  if (current == nullptr) return;
  current->refuse("a call to " + std::string(function) + ", which a replay would not repeat");
}

void depend_on(const void* object, Conditions::Holds holds) {
  auto* conditions = current == nullptr ? CaptureScope::graph_conditions() : &current->conditions();
  if (conditions != nullptr) conditions->add(object, std::move(holds));
}

}  // namespace sconce::detail
