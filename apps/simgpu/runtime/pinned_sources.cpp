#include "simgpu/runtime/pinned_sources.hpp"

#include <array>
#include <cstring>
#include <deque>
#include <string>

#include "simgpu/runtime/memory.hpp"
#include "simgpu/runtime/place.hpp"
#include "simgpu/runtime/races.hpp"
#include "simgpu/runtime/settings.hpp"

namespace simgpu {

namespace {

struct Source {
  Access access = {};
  const Stream* stream = nullptr;
  uint64_t tick = 0;
  const Place* place = nullptr;
  uint64_t hash = 0;
};

// The maximum number of sources to track, in case a program never waits.
constexpr size_t max_sources = 4096;

std::deque<Source>& sources() {
  static auto& all = *new std::deque<Source>;
  return all;
}

uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 32);
}

// Computes four independent hashes, each over every fourth word, so that the CPU can overlap the
// computations.
uint64_t hash_of(const Access& access) {
  std::array<uint64_t, 4> hashes{1, 2, 3, 4};
  std::array<uint64_t, 4> words;
  const auto* bytes = static_cast<const char*>(access.data);
  for (size_t at = 0; at < access.size; at += sizeof words) {
    const size_t left = access.size - at;
    if (left < sizeof words) words = {};
    std::memcpy(words.data(), bytes + at, left < sizeof words ? left : sizeof words);
    for (size_t i = 0; i < words.size(); ++i) hashes[i] = mix(hashes[i], words[i]);
  }
  return mix(mix(hashes[0], hashes[1]), mix(hashes[2], hashes[3]));
}

void check(const Source& source) {
  if (hash_of(source.access) == source.hash) return;
  const auto* block = find_block(source.access.data);
  report_race_later(
      "simulated GPUs: " + std::to_string(source.access.size) + " bytes of " +
      std::string(block != nullptr && block->is_registered ? "registered" : "pinned") +
      " memory changed after a copy from that memory on " + describe(*source.stream) +
      " was requested" + at(source.place) + ", but before the host waited for the copy");
}

template <class Predicate>
void check_and_forget(const Predicate& predicate) {
  std::erase_if(sources(), [&](const Source& source) {
    if (!predicate(source)) return false;
    check(source);
    return true;
  });
}

bool contains(const Access& outer, const Access& inner) {
  const auto* outer_begin = static_cast<const char*>(outer.data);
  const auto* inner_begin = static_cast<const char*>(inner.data);
  return outer_begin <= inner_begin && inner_begin + inner.size <= outer_begin + outer.size;
}

}  // namespace

void watch_source(const Stream& stream, const Access& source) {
  if (settings().races == RaceMode::off) return;
  check_and_forget(
      [&](const Source& former) {  // a wait for the new copy also waits for the previous one
        return former.stream == &stream && contains(source, former.access);
      });
  if (sources().size() == max_sources) sources().pop_front();
  sources().push_back({source, &stream, stream.tick, requested_at(), hash_of(source)});
}

void check_sources(const Clock& done) {
  check_and_forget([&](const Source& source) { return done.at(source.stream->id) >= source.tick; });
}

void check_overwritten_sources(const Access& written) {
  check_and_forget([&](const Source& source) { return overlap(source.access, written); });
}

}  // namespace simgpu
