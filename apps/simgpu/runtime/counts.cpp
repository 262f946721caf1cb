#include "simgpu/runtime/counts.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simgpu/runtime/call_stack.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/settings.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

using Numbers = std::map<std::string, uint64_t>;
using HostWait = std::pair<std::string, CallStack>;  // the waiting function and its callers

struct Counts {
  uint64_t calls = 1;
  std::map<std::string, Numbers> work = {};  // by stream, then by label
  std::map<HostWait, uint64_t> host_waits = {};
  Numbers copied_bytes = {};
  Numbers copies = {};
  uint64_t allocations = 0;
  uint64_t allocated_bytes = 0;
  uint64_t replays = 0;
};

struct AllCounts {
  Counts run = {};
  std::map<std::string, Counts> ranges = {};
  std::vector<std::string> open = {};  // lists a range once for each time it is open
};

AllCounts& counts() {
  static auto& all = *new AllCounts;
  return all;
}

template <class Count>
void add(const Count& count) {
  if (!is_counting()) return;
  count(counts().run);
  auto& open = counts().open;
  for (auto range = open.begin(); range != open.end(); ++range) {
    if (std::find(open.begin(), range, *range) == range) count(counts().ranges[*range]);
  }
}

std::string json_of(const Numbers& numbers) {
  std::string text;
  for (const auto& [name, number] : numbers) {
    text += (text.empty() ? "\"" : ", \"") + name + "\": " + std::to_string(number);
  }
  return "{" + text + "}";
}

Numbers with_places(const std::map<HostWait, uint64_t>& waits) {
  Numbers named;
  for (const auto& [wait, number] : waits) {
    const auto place = place_of(wait.second);
    named[wait.first + (place.empty() ? "" : " at " + place)] += number;
  }
  return named;
}

std::string json_of(const Counts& counted) {
  std::string work;
  for (const auto& [stream, labels] : counted.work) {
    work += (work.empty() ? "\"" : ", \"") + stream + "\": " + json_of(labels);
  }
  return "{\"calls\": " + std::to_string(counted.calls) + ", \"work\": {" + work +
         "}, \"host_waits\": " + json_of(with_places(counted.host_waits)) +
         ", \"copies\": " + json_of(counted.copies) +
         ", \"copied_bytes\": " + json_of(counted.copied_bytes) +
         ", \"allocations\": " + std::to_string(counted.allocations) +
         ", \"allocated_bytes\": " + std::to_string(counted.allocated_bytes) +
         ", \"replays\": " + std::to_string(counted.replays) + "}";
}

std::string file_name() {
  const char* rank = std::getenv("RANK");
  return settings().counts + (rank == nullptr ? "" : std::string(".") + rank);
}

AllCounts copy_of_counts() {
  const Lock lock;
  return counts();
}

void write_counts() {
  const AllCounts all = copy_of_counts();  // the lock must not be held while looking up places
  std::string ranges;
  for (const auto& [name, counted] : all.ranges) {
    ranges += (ranges.empty() ? "\n  \"" : ",\n  \"") + name + "\": " + json_of(counted);
  }
  const auto name = file_name();
  std::ofstream file(name + ".part");
  file << "{\"run\": " << json_of(all.run) << ",\n \"ranges\": {" << ranges << "}}\n";
  file.close();
  if (!file || std::rename((name + ".part").c_str(), name.c_str()) != 0) {
    std::fprintf(stderr, "simulated GPUs: cannot write %s\n", name.c_str());
  }
}

}  // namespace

void count_work(const Stream& stream, const char* label) {
  add([&](Counts& counted) { ++counted.work[describe(stream)][label]; });
}

void count_host_wait(const char* function) {
  if (!is_counting()) return;
  const HostWait wait{function, call_stack()};
  add([&](Counts& counted) { ++counted.host_waits[wait]; });
}

void count_copy(const char* label, size_t bytes) {
  add([&](Counts& counted) {
    ++counted.copies[label];
    counted.copied_bytes[label] += bytes;
  });
}

void count_allocation(size_t bytes) {
  add([&](Counts& counted) {
    ++counted.allocations;
    counted.allocated_bytes += bytes;
  });
}

void count_replay() {
  add([](Counts& counted) { ++counted.replays; });
}

bool is_counting() {
  return !settings().counts.empty();
}

void begin_range(const char* name) {
  const Lock lock;
  const auto [range, is_new] = counts().ranges.try_emplace(name);
  if (!is_new) ++range->second.calls;
  counts().open.push_back(name);
}

void end_range(const char* name) {
  const Lock lock;
  auto& open = counts().open;
  const auto latest = std::find(open.rbegin(), open.rend(), name);
  if (latest != open.rend()) open.erase(std::next(latest).base());
}

void keep_counts() {
  if (!is_counting()) return;
  call_stack();
  std::atexit(write_counts);
}

}  // namespace simgpu
