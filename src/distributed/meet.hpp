#pragma once

#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <string_view>
#include <vector>

#include "distributed/gather_bytes.hpp"
#include "sconce/distributed/process_group.hpp"

namespace sconce::distributed {

/// The calls that begin with `meet`. A name's index is what the ranks compare.
constexpr std::array<std::string_view, 5> meetings = {
    "sconce::nn::DistributedDataParallel", "sconce::Trainer::fit", "sconce::Trainer::fit_epoch",
    "sconce::Trainer::evaluate", "sconce::Trainer::predict"};

/// Runs `check`, which returns up to 6 integers, and returns those of every rank. The calls of
/// `meetings` begin with it on every rank, with one collective of a fixed size, so that ranks that
/// make different calls, or of which one fails, throw at once instead of waiting for each other.
/// @throw c10::Error if the ranks make different calls, or another rank fails.
/// @throw what `check` throws.
template <class Check>
std::vector<std::vector<int64_t>> meet(const ProcessGroup& group, std::string_view call,
                                       const Check& check) {
  if (group.world_size() == 1) return {check()};
  constexpr size_t size = 8;  // the call, whether it failed, and the values
  const auto found = std::find(meetings.begin(), meetings.end(), call);
  std::vector<int64_t> own = {found - meetings.begin(), 0};
  std::exception_ptr failure;
  try {
    const std::vector<int64_t> values = check();
    own.insert(own.end(), values.begin(), values.end());
  } catch (...) {
    failure = std::current_exception();
    own[1] = 1;
  }
  own.resize(size);
  std::vector<std::vector<int64_t>> of_ranks;
  try {
    const auto tensor = at::tensor(at::IntArrayRef(own)).to(device_for(group));
    for (const auto& each : group.all_gather(tensor)) {
      const auto values = each.cpu();
      const auto* begin = values.const_data_ptr<int64_t>();
      of_ranks.emplace_back(begin, begin + size);
    }
  } catch (...) {
    if (!failure) throw;
  }
  if (failure) std::rethrow_exception(failure);
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const auto other = static_cast<size_t>(of_ranks[rank][0]);
    TORCH_CHECK(other == static_cast<size_t>(own[0]), call, ": expected the same call on every ",
                "rank, got ", meetings.at(other), " on rank ", rank,
                ": is the model wrapped in a DistributedDataParallel on every rank?");
    TORCH_CHECK(of_ranks[rank][1] == 0, call, ": expected arguments that every rank accepts, but ",
                "rank ", rank, " rejected its own");
  }
  for (auto& values : of_ranks) values.erase(values.begin(), values.begin() + 2);
  return of_ranks;
}

}  // namespace sconce::distributed
