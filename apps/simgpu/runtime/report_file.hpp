#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace simgpu {

/// A report from a process.
struct Report {
  std::string text;
  uint64_t count = 1;  ///< number of occurrences
  std::string reason;  ///< why it is ignored; empty if it is not ignored
};

/// Writes a file without reports, in JUnit format if its name ends in .xml, and as JSON otherwise.
/// @throw std::runtime_error if the file cannot be written.
void start_report_file(const std::string& file);

/// Writes the reports of a process to the file, replacing reports that this process wrote earlier.
/// Reports of other processes, which may write at the same time, are kept.
/// @throw std::runtime_error if the file cannot be written.
void put_reports(const std::string& file, int process, const std::vector<Report>& reports);

}  // namespace simgpu
