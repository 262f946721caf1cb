#pragma once

#include <cstdint>
#include <vector>

namespace sconce::detail {

/// A process's vote on which variant of its captured step to keep. The process sends this vote to
/// the other processes in its group. Without a compiled step, the vote is `undecided`.
struct StepVote {
  enum Stage : int64_t {
    undecided,  ///< the step is not captured, not compiled, or not compared yet
    compared,   ///< the compiled code computes the same values as the replay
    timing,     ///< both variants are being timed
    timed,      ///< both variants have been timed
    settled     ///< this process has chosen its final variant
  };
  enum Form : int64_t { none, replay, compiled };

  bool operator==(const StepVote&) const = default;

  int64_t stage = undecided;
  int64_t form = none;  // the variant to keep, now or if no timing takes place
  int64_t compiled_ns = 0;
  int64_t replay_ns = 0;
};

/// The votes of all processes, in rank order.
using StepVotes = std::vector<StepVote>;

/// Passes votes between a captured step and the DistributedDataParallel module that the step calls.
struct StepBallot {
  StepVote own = {};         // written by the captured step
  StepVotes all_votes = {};  // from the last exchange; taken by the captured step
  bool is_shared = false;    // whether other processes also vote
};

}  // namespace sconce::detail
