#pragma once

#include <functional>
#include <utility>

namespace sconce::detail {

/// Returns whether a captured step on the CPU is being recorded in this thread.
bool is_recording();

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

/// Makes the step that is being recorded one that cannot be captured, for `reason`, a noun phrase.
/// Does nothing if none is being recorded.
void refuse_recording(const char* reason);

}  // namespace sconce::detail
