#pragma once

#include <string>

namespace simgpu {

/// Adds a report to those of the process: writes it to standard error the first time, and into the
/// file of SCONCE_SIMGPU_REPORT. Returns false, and writes no line, if the user ignores it.
bool add_report(const std::string& text);

/// Writes how often each report was found. Called when the process ends.
void finish_reports();

}  // namespace simgpu
