#pragma once

#include <string>
#include <vector>

namespace simgpu {

/// A kind of report that the user is aware of and does not want to see.
struct KnownReport {
  std::string pattern;  ///< matches the whole line, with * for any text
  std::string reason;   ///< why it is ignored
  int line = 0;         ///< in the file
};

/// Reads a file of patterns, one per line. The comment before a pattern, after #, is its reason.
/// @throw std::runtime_error if the file cannot be read or a pattern has no reason.
std::vector<KnownReport> read_known_reports(const std::string& file);

/// Returns the first pattern that the text matches, or nullptr.
const KnownReport* find_known(const std::vector<KnownReport>& known, const std::string& text);

}  // namespace simgpu
