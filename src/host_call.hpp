#pragma once

#include <c10/util/Type.h>

#include <functional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "capture_scope.hpp"

namespace sconce::detail {

/// A step that the layer `capture` records on the CPU, as the other layers see it. They announce
/// what their host code does by the functions below.
class StepRecording {
 public:
  virtual ~StepRecording() = default;

  /// Runs the call, and adds it to the step.
  virtual void run_host_call(std::function<void()> call) = 0;

  /// Makes the step one that cannot be replayed, for the first reason that is given.
  virtual void refuse(std::string reason) = 0;

  /// Returns what the step depends on besides tensors, to add to.
  virtual Conditions& conditions() = 0;

  /// Returns the recording in this thread, or null.
  static StepRecording* in_this_thread();

  /// Makes `recording`, or null, the one in this thread and returns the earlier one.
  static StepRecording* exchange(StepRecording* recording);
};

/// Returns whether a captured step on the CPU is being recorded in this thread.
bool is_recording();

/// Returns whether a captured step is being captured in this thread, on any device.
inline bool is_capturing() {
  return is_recording() || CaptureScope::graph_conditions() != nullptr;
}

/// Runs `call`, and lets each replay of the step that is being recorded run it again. The call's
/// operators are not recorded.
void record_host_call(std::function<void()> call);

/// Runs `call`, whose host code reads values that may change between steps, such as a learning
/// rate. In a captured step on the CPU each replay runs it again instead of its operators.
template <class Call>
void run_and_record(Call call) {
  if (!is_recording()) return call();
  record_host_call(std::move(call));
}

/// Runs `call`, the body of the class's member function, which changes what the host knows. In a
/// captured step on the CPU each replay runs it again.
/// @throw c10::Error with the function's name in a capture on a GPU.
template <class Call>
void run_on_host(const std::type_info& type, const char* member, Call call) {
  if (!is_capturing()) return call();
  refuse_in_graph(c10::demangle(type.name()) + "::" + member);
  record_host_call(std::move(call));
}

/// Makes the step that is being recorded one that cannot be captured, for `reason`, a noun phrase.
/// Does nothing if none is being recorded.
void refuse_recording(std::string reason);

/// Refuses a call of the function, such as "sconce::seed_everything", in any capture, because a
/// replay would not repeat it. On the CPU the function goes on, and the next call of the captured
/// step throws.
/// @throw c10::Error with the function in a capture on a GPU.
void refuse_in_capture(std::string_view function);

/// Refuses a call of the class's member function.
/// @throw c10::Error as above.
inline void refuse_in_capture(const std::type_info& type, const char* member) {
  if (is_capturing()) refuse_in_capture(c10::demangle(type.name()) + "::" + member);
}

/// Adds a condition about the object to the capture that is being made in this thread. Does nothing
/// if there is none.
void depend_on(const void* object, Conditions::Holds holds);

}  // namespace sconce::detail
