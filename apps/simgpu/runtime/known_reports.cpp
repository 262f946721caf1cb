#include "simgpu/runtime/known_reports.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace simgpu {

namespace {

std::string trim(const std::string& text) {
  constexpr const char* blanks = " \t\r";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

}  // namespace

std::vector<KnownReport> read_known_reports(const std::string& file) {
  std::ifstream lines(file);
  if (!lines) throw std::runtime_error("cannot read " + file);
  std::vector<KnownReport> known;
  std::string reason;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = trim(line);
    if (line.empty()) {
      reason.clear();
    } else if (line.front() == '#') {
      reason += (reason.empty() ? "" : " ") + trim(line.substr(1));
    } else if (reason.empty()) {
      throw std::runtime_error(file + ", line " + std::to_string(number) +
                               ": expected a comment with the reason before the pattern");
    } else {
      known.push_back({line, std::exchange(reason, ""), number});
    }
  }
  if (lines.bad()) throw std::runtime_error("cannot read " + file);
  return known;
}

const KnownReport* find_known(const std::vector<KnownReport>& known, const std::string& text) {
  const auto found = std::find_if(known.begin(), known.end(), [&](const KnownReport& report) {
    return fnmatch(report.pattern.c_str(), text.c_str(), FNM_NOESCAPE) == 0;
  });
  return found == known.end() ? nullptr : &*found;
}

}  // namespace simgpu
