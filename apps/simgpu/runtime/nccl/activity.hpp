#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace simgpu::nccl {

/// Text that ranks show each other.
using CallText = std::array<char, 128>;

/// Set of ranks: bit i is rank i.
using Ranks = uint64_t;

enum class Activity : uint32_t {
  /// Has no call of the communicator to do.
  none,
  /// Has a call, whose stream has other work to do first.
  queued,
  /// Exchanges with the other ranks.
  exchanging,
};

/// What a rank of a communicator does at present, in memory that the ranks share. One thread of the
/// rank writes it, and any may read it: a reader that finds it halfway written sees an empty call.
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

  /// Counts the time from now, since the activity continues.
  void restart_clock();

  /// Sets the ranks without which it does not continue.
  void set_waits_for(Ranks ranks) { waits_for_.store(ranks); }

  State read() const;

 private:
  std::atomic<uint32_t> version_;  // odd while it is written
  std::atomic<Activity> activity_;
  std::atomic<int64_t> since_ns_;  // of the steady clock, which processes share
  std::atomic<Ranks> waits_for_;
  CallText call_;
};

/// "rank 1 has waited 8 s for rank 0 in ncclSend of 100 float32 to rank 0".
std::string describe(int rank, const ActivityRecord::State& state);

}  // namespace simgpu::nccl
