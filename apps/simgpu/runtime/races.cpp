#include "simgpu/runtime/races.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "simgpu/runtime/memory.hpp"
#include "simgpu/runtime/pinned_sources.hpp"
#include "simgpu/runtime/reports.hpp"
#include "simgpu/runtime/settings.hpp"

namespace simgpu {

namespace {

std::string& kept_race() {
  static auto& text = *new std::string;
  return text;
}

// Whether the process must exit with an error because a race was reported, even if the program
// catches the exception.
std::atomic<bool> must_fail = false;

void end_process(int status, void*) {
  finish_reports();
  if (status != 0 || !must_fail) return;
  std::fflush(nullptr);
  _exit(1);
}

// Registered while the library is being loaded, so it runs after all of the program's own exit
// handlers.
[[maybe_unused]] const int exit_handler = ::on_exit(end_process, nullptr);

// Reports the text if race detection is enabled. Returns whether the caller must also throw an
// exception with this text.
bool write_race(const std::string& text) {
  if (settings().races == RaceMode::off || !add_report(text)) return false;
  if (settings().races >= RaceMode::fail) must_fail = true;
  return settings().races >= RaceMode::raise;
}

std::string describe_race(const Conflict& former, const User& user, const Access& access) {
  const auto rows = access.rows == 1 ? "" : std::to_string(access.rows) + " rows of ";
  return std::string("simulated GPUs: a race: ") + user.label +
         (access.writes ? " writes " : " reads ") + rows + std::to_string(access.size) +
         " bytes on " + describe(*user.stream) + at(user.place) + ", which " + former.user.label +
         (former.writes ? " writes on " : " reads on ") + describe(*former.user.stream) +
         at(former.user.place) + ", and nothing orders the two operations" +
         (former.user.memory_freed ? ". The memory was freed in between: record_stream is missing"
                                   : "");
}

}  // namespace

// Splits the range that contains the address, if any, and returns the first range at or after the
// address.
AccessHistory::Ranges::iterator AccessHistory::split(uintptr_t address) {
  const auto after = ranges_.lower_bound(address);
  if (after == ranges_.begin()) return after;
  auto& before = std::prev(after)->second;
  if (before.end <= address) return after;
  const auto second_part = ranges_.emplace_hint(after, address, before);
  before.end = address;
  return second_part;
}

void AccessHistory::find_conflicts(const Range& range, const Clock& seen, bool writes) {
  if (!range.writer.is_in(seen)) conflicts_.push_back({range.writer, true});
  if (!writes) return;
  for (const auto& reader : range.readers) {
    if (!reader.is_in(seen)) conflicts_.push_back({reader, false});
  }
}

const std::vector<Conflict>& AccessHistory::add(const User& user, const Clock& seen,
                                                const Access& access) {
  conflicts_.clear();
  const auto begin = reinterpret_cast<uintptr_t>(access.data);
  const auto end = begin + access.size;
  auto range = split(begin);
  if (range == ranges_.end() || range->second.end != end) split(end);
  auto first = ranges_.end();
  for (auto at = begin; at < end; ++range) {
    if (range == ranges_.end() || range->first > at) {  // memory that has not been accessed yet
      const auto next = range == ranges_.end() ? end : std::min(end, range->first);
      range = ranges_.emplace_hint(range, at, Range{.end = next});
    }
    if (at == begin) first = range;
    auto& old = range->second;
    find_conflicts(old, seen, access.writes);
    at = old.end;
    if (access.writes) continue;
    std::erase_if(old.readers, [&](const User& reader) { return reader.stream == user.stream; });
    old.readers.push_back(user);
  }
  if (!access.writes) return conflicts_;
  ranges_.erase(std::next(first), range);
  first->second.end = end;
  first->second.writer = user;
  first->second.readers.clear();
  return conflicts_;
}

std::vector<Conflict> AccessHistory::find_unordered(const Access& access, const Clock& seen) const {
  std::vector<Conflict> found;
  const auto begin = reinterpret_cast<uintptr_t>(access.data);
  auto range = ranges_.upper_bound(begin);
  if (range != ranges_.begin() && std::prev(range)->second.end > begin) --range;
  for (; range != ranges_.end() && range->first < begin + access.size; ++range) {
    const auto& used = range->second;
    if (!used.writer.is_in(seen)) found.push_back({used.writer, true});
    for (const auto& reader : used.readers) {
      if (!reader.is_in(seen)) found.push_back({reader, false});
    }
  }
  return found;
}

void AccessHistory::mark_freed(const void* data, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  auto range = split(begin);
  split(begin + size);
  for (; range != ranges_.end() && range->first < begin + size; ++range) {
    auto& used = range->second;
    used.writer.memory_freed = !used.writer.is_replay;
    for (auto& reader : used.readers) reader.memory_freed = !reader.is_replay;
  }
}

void AccessHistory::forget(const void* data, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const auto first = split(begin);
  if (first == ranges_.end()) return;
  split(begin + size);
  ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(begin + size));
}

AccessHistory& access_history() {
  static auto& history = *new AccessHistory;
  return history;
}

void check_accesses(AccessHistory& history, const User& user, const Clock& seen,
                    const Access* accesses, size_t count) {
  if (settings().races == RaceMode::off) return;
  for (const auto* access = accesses; access != accesses + count; ++access) {
    if (access->size == 0) continue;
    const bool is_of_gpu = is_gpu_address(access->data);
    if (!is_of_gpu && find_block(access->data) == nullptr) continue;
    if (!is_of_gpu && access->writes) check_overwritten_sources(*access);
    for (const auto& former : history.add(user, seen, *access)) {
      report_race(describe_race(former, user, *access));
    }
  }
}

void report_race(const std::string& text) {
  if (write_race(text)) throw std::runtime_error(text);
}

void report_race_unthrown(const std::string& text) {
  write_race(text);
}

void report_race_later(const std::string& text) {
  if (write_race(text)) kept_race() = text;
}

void throw_kept_race() {
  if (!kept_race().empty()) throw std::runtime_error(std::exchange(kept_race(), ""));
}

}  // namespace simgpu
