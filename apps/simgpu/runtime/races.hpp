#pragma once

#include <map>
#include <vector>

#include "simgpu/runtime/clock.hpp"
#include "simgpu/runtime/place.hpp"
#include "simgpu/runtime/stream.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

/// A piece of work that has accessed some memory.
struct User {
  const Stream* stream = nullptr;
  uint64_t tick = 0;
  const char* label = "";
  const Place* place = nullptr;  ///< where the work was requested
  bool is_replay = false;        ///< whether the work is part of a graph replay
  bool memory_freed = false;     ///< whether the memory was freed after the work was requested

  /// Returns whether the clock includes this work.
  bool is_in(const Clock& seen) const { return stream == nullptr || seen.at(stream->id) >= tick; }
};

/// An earlier access to memory that is not ordered before the current access.
struct Conflict {
  User user;
  bool writes = false;
};

/// Stores, for each range of memory, the last work that wrote it and the work that has read it
/// since then.
class AccessHistory {
 public:
  /// Adds an access by a user. Returns the earlier accesses that race with it. The result is valid
  /// until the next call.
  const std::vector<Conflict>& add(const User& user, const Clock& seen, const Access& access);

  /// Returns the earlier users of the memory that the clock does not include.
  std::vector<Conflict> find_unordered(const Access& access, const Clock& seen) const;

  /// Records that the memory is freed after all accesses so far, except accesses by replays. A
  /// graph's memory must outlive its launches, and launches do not call record_stream.
  void mark_freed(const void* data, size_t size);

  /// Removes all accesses to the memory.
  void forget(const void* data, size_t size);

 private:
  struct Range {
    uintptr_t end = 0;
    User writer = {};
    std::vector<User> readers = {};
  };
  using Ranges = std::map<uintptr_t, Range>;

  Ranges::iterator split(uintptr_t address);
  void find_conflicts(const Range& range, const Clock& seen, bool writes);

  Ranges ranges_;
  std::vector<Conflict> conflicts_;
};

/// Returns the access history of all memory known to CUDA, excluding accesses in captures.
AccessHistory& access_history();

/// Checks the accesses of a stream's current work and records them.
/// @throw std::runtime_error for a race, if races are configured to throw.
void check_accesses(AccessHistory& history, const User& user, const Clock& seen,
                    const Access* accesses, size_t count);

/// Like `report_race`, but does not throw.
void report_race_unthrown(const std::string& text);

/// Reports a race in a context where LibTorch cannot handle an exception. Works like `report_race`,
/// except that the next piece of work throws the text.
void report_race_later(const std::string& text);

/// @throw std::runtime_error with the text stored by `report_race_later`.
void throw_kept_race();

}  // namespace simgpu
