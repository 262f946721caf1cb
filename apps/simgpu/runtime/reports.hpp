#pragma once

#include <string>

namespace simgpu {

/// Adds a report to the process's reports. The first time a report occurs, writes it to standard
/// error and to the file specified by SCONCE_SIMGPU_REPORT. If the user ignores this report, writes
/// no line and returns false.
bool add_report(const std::string& text);

/// Writes the number of times that each report occurred. Called when the process ends.
void finish_reports();

}  // namespace simgpu
