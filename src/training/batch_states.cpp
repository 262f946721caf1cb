#include "training/batch_states.hpp"

#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <vector>

#include "distributed/gather_bytes.hpp"

namespace sconce {

namespace {

std::vector<c10::IValue> gather(const c10::IValue& state, const distributed::ProcessGroup& group) {
  if (group.world_size() == 1) return {state};
  const auto pickle = torch::jit::pickle_save(state);
  std::vector<c10::IValue> all;
  for (const auto& each : distributed::gather_texts(group, {pickle.begin(), pickle.end()})) {
    all.push_back(torch::jit::pickle_load({each.begin(), each.end()}));
  }
  return all;
}

}  // namespace

std::optional<c10::IValue> states_of_ranks(const AnyBatches& batches,
                                           const distributed::ProcessGroup& group) {
  const auto state = batches.state_dict();
  if (!state) return {};
  c10::impl::GenericList all(c10::AnyType::get());
  for (auto& each : gather(*state, group)) all.push_back(std::move(each));
  return all;
}

void load_state_of_rank(const AnyBatches& batches, const c10::IValue& states,
                        const distributed::ProcessGroup& group) {
  const auto ranks = static_cast<size_t>(group.world_size());
  const size_t saved = states.isList() ? states.toListRef().size() : 0;
  TORCH_CHECK(saved == ranks, "sconce::Trainer::fit: expected training-batch state for ", ranks,
              " ranks in a checkpoint's 'train', got state for ", saved);
  batches.load_state_dict(states.toListRef()[static_cast<size_t>(group.rank())]);
}

}  // namespace sconce
