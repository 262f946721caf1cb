#pragma once

#include <functional>

#include "capture/recorder.hpp"

namespace sconce::detail {

/// Returns whether steps can be recorded in this process. They cannot where another library uses
/// LibTorch's dispatch key `Fake`.
bool can_record();

/// Runs the step in this thread, and records its operators. `earlier` is the trace of its last
/// recording, which tells its parameters, or null. No step is being recorded in this thread.
RecordingOutcome record(const std::function<void()>& step, const StepTrace* earlier);

}  // namespace sconce::detail
