#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "io/memory_budget.hpp"

namespace sconce::io {

/// Returns the whole storage of a key, on its final device. The type is the one that the pickle
/// gives the storage, or none if its elements have no type.
using LoadStorage =
    std::function<c10::Storage(const std::string& key, std::optional<c10::ScalarType> type)>;

/// Reads a pickle of a state dict written by torch.save, in Python's pickle protocol 2. Supports
/// the operations of torch.load with weights_only, except those that make objects of classes. Calls
/// only functions on a closed list. `load` is called each time the pickle names a storage. `who`
/// begins the errors.
/// @throw c10::Error naming the byte, or if the values need more memory than the budget.
c10::IValue read_pickle(std::string_view pickle, const LoadStorage& load, MemoryBudget& budget,
                        const std::string& who);

}  // namespace sconce::io
