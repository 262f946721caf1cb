#include "distributed/together.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string>

#include "distributed/gather_bytes.hpp"

namespace sconce::distributed {

namespace {

// To compare calls across ranks, the ranks exchange indices into this list.
constexpr std::array<std::string_view, 6> calls = {
    "sconce::nn::DistributedDataParallel", "sconce::Trainer::fit",     "sconce::Trainer::fit_epoch",
    "sconce::Trainer::evaluate",           "sconce::Trainer::predict", "sconce::Checkpoint"};

// The layout of each rank's message: the call index, a failure flag, and the values.
constexpr size_t call_index = 0;
constexpr size_t failure_index = 1;
constexpr size_t first_value = 2;
constexpr size_t message_size = 10;

void check_message(const std::vector<int64_t>& message, size_t rank, std::string_view call) {
  const auto called = calls.at(static_cast<size_t>(message[call_index]));
  TORCH_CHECK(called == call, call, ": expected the same call on every rank, got ", called,
              " on rank ", rank,
              "; check that every rank wraps the model in a DistributedDataParallel");
  if (message[failure_index] == 0) return;
  TORCH_CHECK(call != calls.back(), call,
              ": another rank failed; see its error message for the cause");
  TORCH_CHECK(false, call, ": expected arguments that every rank accepts, but rank ", rank,
              " rejected its own");
}

}  // namespace

std::vector<RankValues> together(const ProcessGroup& group, std::string_view call,
                                 const std::function<RankValues()>& work) {
  if (group.world_size() == 1) return {work()};
  const auto found = std::find(calls.begin(), calls.end(), call);
  std::vector<int64_t> own = {found - calls.begin(), 0};
  std::exception_ptr failure;
  try {
    const RankValues values = work();
    own.insert(own.end(), values.begin(), values.end());
  } catch (...) {
    failure = std::current_exception();
    own[failure_index] = 1;
  }
  std::vector<std::vector<int64_t>> messages;
  try {
    own.resize(message_size);
    messages = gather_integers(group, own);
  } catch (...) {
    if (!failure) throw;
  }
  if (failure) std::rethrow_exception(failure);
  for (size_t rank = 0; rank < messages.size(); ++rank) check_message(messages[rank], rank, call);
  for (auto& message : messages) message.erase(message.begin(), message.begin() + first_value);
  return messages;
}

}  // namespace sconce::distributed
