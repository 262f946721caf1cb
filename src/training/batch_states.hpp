#pragma once

#include <ATen/core/ivalue.h>

#include <optional>

#include "sconce/distributed/process_group.hpp"
#include "sconce/training/any_batches.hpp"

namespace sconce {

/// Returns a list with each rank's batch state, or std::nullopt if the batches have no state. In a
/// group with more than one rank, this function is a collective.
std::optional<c10::IValue> states_of_ranks(const AnyBatches& batches,
                                           const distributed::ProcessGroup& group);

/// Loads this rank's state from the list.
/// @throw c10::Error if the value is not a list with one state per rank. Also rethrows any error
/// from the batches.
void load_state_of_rank(const AnyBatches& batches, const c10::IValue& states,
                        const distributed::ProcessGroup& group);

}  // namespace sconce
