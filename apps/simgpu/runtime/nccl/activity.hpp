#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace simgpu::nccl {

/// A string that ranks make visible to each other.
using CallText = std::array<char, 128>;

/// A set of ranks: bit i stands for rank i.
using Ranks = uint64_t;

enum class Activity : uint32_t {
  /// The rank has no unfinished call on the communicator.
  none,
  /// The rank has made a call, but its stream must finish other work first.
  queued,
  /// The rank is exchanging data with the other ranks.
  exchanging,
};

/// The current activity of a rank in a communicator, stored in memory that the ranks share. One
/// thread of the rank writes it, and any thread may read it. A thread that reads it during a write
/// sees an empty call.
class ActivityRecord {
 public:
  struct State {
    Activity activity = Activity::none;
    std::string call = {};
    std::chrono::seconds lasts = {};
    Ranks waits_for = 0;
  };

  /// Begins an activity.
  void begin(Activity activity, const std::string& call);

  /// Restarts the timer, because the activity has made progress.
  void restart_clock();

  /// Sets the ranks that the activity is waiting for.
  void set_waits_for(Ranks ranks) { waits_for_.store(ranks); }

  State read() const;

 private:
  std::atomic<uint32_t> version_;  // odd during a write
  std::atomic<Activity> activity_;
  std::atomic<int64_t> since_ns_;  // on the steady clock, which all processes share
  std::atomic<Ranks> waits_for_;
  CallText call_;
};

/// Returns a description such as "rank 1 has waited 8 s for rank 0 in ncclSend of 100 float32 to
/// rank 0".
std::string describe(int rank, const ActivityRecord::State& state);

}  // namespace simgpu::nccl
