#include "simgpu/runtime/reports.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <vector>

#include "simgpu/runtime/known_reports.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/report_file.hpp"
#include "simgpu/runtime/settings.hpp"

namespace simgpu {

namespace {

struct Reports {
  std::vector<KnownReport> known = {};
  std::vector<Report> found = {};
};

Reports read_known() {
  Reports all;
  if (settings().ignore.empty()) return all;
  try {
    all.known = read_known_reports(settings().ignore);
  } catch (const std::exception& error) {  // the file was readable when the program started
    std::fprintf(stderr, "simulated GPUs: %s\n", error.what());
  }
  return all;
}

Reports& reports() {
  static auto& all = *new Reports(read_known());
  return all;
}

void write_file() {
  if (settings().report.empty()) return;
  try {
    put_reports(settings().report, getpid(), reports().found);
  } catch (const std::exception& error) {
    write_once(std::string("simulated GPUs: ") + error.what());
  }
}

void write_ignored() {
  std::map<int, uint64_t> ignored;  // indexed by the line number of the pattern
  for (const auto& report : reports().found) {
    const auto* match = find_known(reports().known, report.text);
    if (match != nullptr) ignored[match->line] += report.count;
  }
  std::string counts;
  for (const auto& [line, count] : ignored) {
    counts +=
        (counts.empty() ? "" : ", ") + std::to_string(count) + " by line " + std::to_string(line);
  }
  if (counts.empty()) return;
  write_once("simulated GPUs: reports ignored by " + settings().ignore + ": " + counts);
}

}  // namespace

bool add_report(const std::string& text) {
  const Lock lock;
  auto& [known, found] = reports();
  const auto former = std::find_if(found.begin(), found.end(),
                                   [&](const Report& report) { return report.text == text; });
  if (former != found.end()) {
    ++former->count;
    return former->reason.empty();
  }
  const auto* match = find_known(known, text);
  found.push_back({.text = text, .reason = match == nullptr ? "" : match->reason});
  if (match == nullptr) write_once(text);
  write_file();
  return match == nullptr;
}

void finish_reports() {
  const Lock lock;
  if (reports().found.empty()) return;
  write_file();
  write_ignored();
}

}  // namespace simgpu
