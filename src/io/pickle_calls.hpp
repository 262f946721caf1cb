#pragma once

#include <optional>
#include <string_view>

#include "io/pickle_values.hpp"

// The allowlist of names that a pickle may reference or call. No other names are ever looked up.
namespace sconce::io {

/// Returns the object with the given name.
/// @throw c10::Error with the name if it is not on the allowlist.
c10::IValue find_global(std::string_view module, std::string_view name, Containers& containers,
                        const Place& place);

/// Returns the result of calling a global with a tuple of arguments, as in Python.
/// @throw c10::Error if the global is not callable, if torch.save does not write such arguments, or
/// if a tensor extends beyond its storage.
c10::IValue call_global(const c10::IValue& global, const c10::IValue& arguments,
                        Containers& containers, const Place& place);

/// Returns the element type of a storage class, or std::nullopt for the untyped storage class.
/// @throw c10::Error if the value is not a storage class.
std::optional<c10::ScalarType> storage_type(const c10::IValue& global, const Place& place);

}  // namespace sconce::io
