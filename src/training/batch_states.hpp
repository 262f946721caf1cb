#pragma once

#include <ATen/core/ivalue.h>

#include <optional>

#include "sconce/distributed/process_group.hpp"
#include "sconce/training/any_batches.hpp"

namespace sconce {

/// Returns a list of the batches' state on each rank, or nothing if they have none. In a group of
/// several it is a collective.
std::optional<c10::IValue> states_of_ranks(const AnyBatches& batches,
                                           const distributed::ProcessGroup& group);

/// Loads this rank's state from the list.
/// @throw c10::Error if it is not a list with a state for each rank, and what the batches throw.
void load_state_of_rank(const AnyBatches& batches, const c10::IValue& states,
                        const distributed::ProcessGroup& group);

}  // namespace sconce
