#pragma once

#include <cstdint>
#include <vector>

namespace sconce::detail {

/// What a process tells the others of its group about the form of its captured step. Without a
/// compiled step it is `undecided`.
struct StepVote {
  enum Stage : int64_t {
    undecided,  ///< the step is not captured, not compiled, or not compared
    compared,   ///< the compiled code computes what the replay computes
    timing,     ///< both forms are being timed
    timed,      ///< both forms have been timed
    settled     ///< the process keeps a form
  };
  enum Form : int64_t { none, replay, compiled };

  bool operator==(const StepVote&) const = default;

  int64_t stage = undecided;
  int64_t form = none;  // that it keeps, or would keep without timing
  int64_t compiled_ns = 0;
  int64_t replay_ns = 0;
};

/// The votes of all processes, in rank order.
using StepVotes = std::vector<StepVote>;

/// Carries votes between a captured step and the DistributedDataParallel that it calls.
struct StepBallot {
  StepVote own = {};       // written by the captured step
  StepVotes of_all = {};   // of the last exchange; taken by the captured step
  bool is_shared = false;  // whether other processes vote too
};

}  // namespace sconce::detail
