#pragma once

#include <map>
#include <vector>

#include "simgpu/runtime/clock.hpp"
#include "simgpu/runtime/place.hpp"
#include "simgpu/runtime/stream.hpp"
#include "simgpu/runtime/work.hpp"

namespace simgpu {

/// A piece of work that has used some memory.
struct User {
  const Stream* stream = nullptr;
  uint64_t tick = 0;
  const char* label = "";
  const Place* place = nullptr;  ///< where it was requested
  bool is_replay = false;        ///< of a graph
  bool has_lost = false;         ///< the memory was freed after the work was requested

  /// Whether it comes before all that knows the clock.
  bool is_in(const Clock& seen) const { return stream == nullptr || seen.at(stream->id) >= tick; }
};

/// Former use of memory that nothing orders before the present one.
struct Conflict {
  User user;
  bool writes = false;
};

/// Who has last written each range of memory, and who has read it since.
class AccessHistory {
 public:
  /// Adds an access of a user, and returns the former ones that race with it, until the next call.
  const std::vector<Conflict>& add(const User& user, const Clock& seen, const Access& access);

  /// Returns the former users of the memory that the clock does not know.
  std::vector<Conflict> find_unordered(const Access& access, const Clock& seen) const;

  /// Keeps that the memory is freed after all accesses so far, except those of replays: a graph's
  /// memory has to outlive its launches, and there is no record_stream for them.
  void mark_freed(const void* data, size_t size);

  /// Forgets all accesses to the memory.
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

/// Returns the history of all memory that CUDA knows, outside captures.
AccessHistory& access_history();

/// Checks the accesses of a stream's present work, and keeps them.
/// @throw std::runtime_error in a race, if races are to be thrown.
void check_accesses(AccessHistory& history, const User& user, const Clock& seen,
                    const Access* accesses, size_t count);

/// Does as `report_race`, and throws nothing.
void report_race_unthrown(const std::string& text);

/// Reports where LibTorch cannot bear an exception: does as `report_race`, but the next piece of
/// work throws the text.
void report_race_later(const std::string& text);

/// @throw std::runtime_error for what `report_race_later` has kept.
void throw_kept_race();

}  // namespace simgpu
