#pragma once

#include <functional>

#include "capture/recorder.hpp"

namespace sconce::detail {

/// Returns whether this process can record steps. Recording is not possible if another library uses
/// LibTorch's `Fake` dispatch key.
bool can_record();

/// Runs the step in this thread and records its operators. `earlier` is the trace of the step's
/// previous recording, which identifies the parameters, or null. No other recording may be in
/// progress in this thread.
RecordingOutcome record(const std::function<void()>& step, const StepTrace* earlier);

}  // namespace sconce::detail
