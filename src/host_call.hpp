#pragma once

#include <c10/util/Type.h>

#include <functional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "capture_scope.hpp"

namespace sconce::detail {

/// The interface between other layers and a step that the `capture` layer records on the CPU. The
/// other layers report their host code through the functions below.
class StepRecording {
 public:
  virtual ~StepRecording() = default;

  /// Runs the call and adds it to the step.
  virtual void run_host_call(std::function<void()> call) = 0;

  /// Marks the step as one that cannot be replayed. Only the first reason is kept.
  virtual void refuse(std::string reason) = 0;

  /// Returns the non-tensor conditions of the step, so that callers can add to them.
  virtual Conditions& conditions() = 0;

  /// Returns this thread's recording, or null.
  static StepRecording* in_this_thread();

  /// Replaces this thread's recording with `recording`, which may be null. Returns the previous
  /// recording.
  static StepRecording* exchange(StepRecording* recording);
};

/// Returns whether this thread is recording a captured step on the CPU.
bool is_recording();

/// Returns whether this thread is capturing a step on any device.
inline bool is_capturing() {
  return is_recording() || CaptureScope::graph_conditions() != nullptr;
}

/// Runs `call`, and makes each replay of the current recording rerun it. The operators in the call
/// are not recorded.
void record_host_call(std::function<void()> call);

/// Runs `call`, which contains host code that reads values that may change between steps, such as a
/// learning rate. In a captured step on the CPU, each replay reruns the call instead of replaying
/// its operators.
template <class Call>
void run_and_record(Call call) {
  if (!is_recording()) return call();
  record_host_call(std::move(call));
}

/// Runs `call`, the body of a member function that changes the host state of the class. In a
/// captured step on the CPU, each replay reruns the body.
/// @throw c10::Error with the function's name during a capture on a GPU.
template <class Call>
void run_on_host(const std::type_info& type, const char* member, Call call) {
  if (!is_capturing()) return call();
  check_not_capturing_graph(c10::demangle(type.name()) + "::" + member);
  record_host_call(std::move(call));
}

/// Marks the step that is being recorded as one that cannot be captured. `reason` is a noun phrase.
/// Does nothing if no step is being recorded.
void reject_recording(std::string reason);

/// Rejects a call to the function, such as "sconce::seed_everything", during any capture, because
/// replays would not repeat the call. On the CPU, the function continues, and the next call to the
/// captured step throws.
/// @throw c10::Error with the function's name during a capture on a GPU.
void check_not_capturing(std::string_view function);

/// Rejects a call to a member function of the class.
/// @throw c10::Error as described above.
inline void check_not_capturing(const std::type_info& type, const char* member) {
  if (is_capturing()) check_not_capturing(c10::demangle(type.name()) + "::" + member);
}

/// Adds a condition on the object to this thread's current capture. Does nothing outside a capture.
void depend_on(const void* object, Conditions::Holds holds);

}  // namespace sconce::detail
