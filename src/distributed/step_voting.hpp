#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "distributed/gather_bytes.hpp"
#include "sconce/distributed/process_group.hpp"
#include "step_vote.hpp"

namespace sconce::distributed {

/// Exchanges the votes on captured steps between the ranks that train a DistributedDataParallel
/// module. All ranks count the same forward passes, so they exchange votes in the same forward
/// passes. If the votes changed in the last exchange, the next exchange happens in the next forward
/// pass. Otherwise, the interval doubles.
class StepVoting {
 public:
  /// Exchanges the votes in this ballot from now on, without keeping the ballot alive.
  void use(const std::shared_ptr<sconce::detail::StepBallot>& ballot) {
    ballot->is_shared = true;
    ballot_ = ballot;
    is_used_ = true;
  }

  /// Counts a forward pass with gradient averaging. Does nothing if there is no ballot.
  void exchange(const ProcessGroup& group) {
    if (!is_used_ || --left_ > 0) return;
    const auto ballot = ballot_.lock();
    auto votes = gather(group, ballot ? ballot->own : sconce::detail::StepVote());
    interval_ = votes == last_ ? std::min(2 * interval_, longest_interval) : 1;
    left_ = interval_;
    if (ballot) ballot->all_votes = votes;
    last_ = std::move(votes);
  }

 private:
  static constexpr int longest_interval = 128;

  static sconce::detail::StepVotes gather(const ProcessGroup& group,
                                          const sconce::detail::StepVote& own) {
    sconce::detail::StepVotes votes;
    for (const auto& fields :
         gather_integers(group, {own.stage, own.form, own.compiled_ns, own.replay_ns})) {
      votes.push_back({fields[0], fields[1], fields[2], fields[3]});
    }
    return votes;
  }

  std::weak_ptr<sconce::detail::StepBallot> ballot_ = {};
  bool is_used_ = false;
  int interval_ = 1;
  int left_ = 1;  // forward passes until the next exchange
  sconce::detail::StepVotes last_ = {};
};

}  // namespace sconce::distributed
