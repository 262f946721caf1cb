#pragma once

#include <c10/util/Exception.h>

#include <set>
#include <string>
#include <vector>

#include "distributed/rendezvous.hpp"

// These functions let the ranks agree on a backend. Every rank decides based on information from
// all ranks, so all ranks choose the same backend.
namespace sconce::distributed {

constexpr auto both_backends = "cpu:gloo,cuda:nccl";

// The information that each rank shares with the other ranks.
struct BackendOfRank {
  std::string named = {};  // backend in its options; empty for the default
  std::string gpu = {};    // UUID of its GPU; empty without a GPU or without NCCL
};

// Returns the backend for a group. NCCL requires a separate GPU for each rank.
inline std::string agree_backend(const std::vector<BackendOfRank>& ranks) {
  const auto text = [](const std::string& named) { return named.empty() ? "none" : named; };
  std::set<std::string> gpus;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    TORCH_CHECK(ranks[rank].named == ranks[0].named,
                "expected the same backend in the options of every rank, got ",
                text(ranks[0].named), " on rank 0 and ", text(ranks[rank].named), " on rank ",
                rank);
    if (!ranks[rank].gpu.empty()) gpus.insert(ranks[rank].gpu);
  }
  if (!ranks[0].named.empty()) return ranks[0].named;
  return gpus.size() == ranks.size() ? both_backends : "gloo";
}

// Announces this rank's information, waits until every rank has done the same, and returns the
// backend for the group.
inline std::string agree_backend(c10d::Store& store, const Launch& launch, const BackendOfRank& own,
                                 Clock::time_point deadline) {
  announce(store, launch.rank, "joined", own.named + " " + own.gpu);
  wait_for_ranks(store, ranks_from(0, launch), "joined", deadline);
  std::vector<BackendOfRank> ranks;
  for (const auto& text : announced_values(store, ranks_from(0, launch), "joined")) {
    const size_t blank = text.find(' ');
    ranks.push_back({text.substr(0, blank), text.substr(blank + 1)});
  }
  return agree_backend(ranks);
}

}  // namespace sconce::distributed
