#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "sconce/distributed/process_group.hpp"

namespace sconce::distributed {

/// The integers that one rank shares with the other ranks. Each rank can share at most 8.
using RankValues = std::vector<int64_t>;

/// Runs `work` on every rank, and returns each rank's result in rank order. Either every rank
/// returns or every rank throws, so no rank waits forever for another rank that failed or called a
/// different function. In a group with more than one rank, this function uses a single collective,
/// which has the same size in each call.
///
/// `call` is the public function that the ranks called. It must be included in the list in the
/// source file.
/// @throw any error that `work` throws on this rank.
/// @throw c10::Error if `work` throws on another rank, or if the ranks make different calls.
std::vector<RankValues> together(const ProcessGroup& group, std::string_view call,
                                 const std::function<RankValues()>& work);

}  // namespace sconce::distributed
