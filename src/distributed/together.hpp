#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "sconce/distributed/process_group.hpp"

namespace sconce::distributed {

/// The integers that one rank shares with the others, at most 8.
using RankValues = std::vector<int64_t>;

/// Runs `work` on every rank, and returns what it returned on each rank, in rank order. All ranks
/// return or all throw: no rank waits in vain for one that failed or called something else. In a
/// group of several this is one collective, of the same size in each call.
///
/// `call` is the public function that the ranks have called, one of those listed in the source.
/// @throw what `work` throws on this rank.
/// @throw c10::Error if `work` throws on another rank, or if the ranks make different calls.
std::vector<RankValues> together(const ProcessGroup& group, std::string_view call,
                                 const std::function<RankValues()>& work);

}  // namespace sconce::distributed
