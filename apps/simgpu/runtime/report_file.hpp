#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace simgpu {

/// What a process has found.
struct Report {
  std::string text;
  uint64_t count = 1;  ///< how often
  std::string reason;  ///< why it is ignored; empty if it is not
};

/// Writes a file without reports. A name that ends in .xml gets JUnit's format, any other JSON.
/// @throw std::runtime_error if it cannot be written.
void start_report_file(const std::string& file);

/// Puts the reports of a process into the file, instead of those that it has put there before. The
/// reports of other processes, which may write at the same time, stay.
/// @throw std::runtime_error if it cannot be written.
void put_reports(const std::string& file, int process, const std::vector<Report>& reports);

}  // namespace simgpu
