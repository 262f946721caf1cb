#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "io/memory_budget.hpp"

namespace sconce::io {

/// Returns the whole storage for a key, on its final device. `type` is the element type that the
/// pickle specifies for the storage, or empty for an untyped storage.
using LoadStorage =
    std::function<c10::Storage(const std::string& key, std::optional<c10::ScalarType> type)>;

/// Reads a pickled state dict that torch.save wrote with Python's pickle protocol 2. Supports the
/// same operations as torch.load with weights_only, except for operations that create class
/// instances. Calls only functions on an allowlist. Calls `load` each time the pickle references a
/// storage. Error messages start with `error_prefix`.
/// @throw c10::Error with the byte offset, or if the values need more memory than the budget
/// allows.
c10::IValue read_pickle(std::string_view pickle, const LoadStorage& load, MemoryBudget& budget,
                        const std::string& error_prefix);

}  // namespace sconce::io
