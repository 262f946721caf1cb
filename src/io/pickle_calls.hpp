#pragma once

#include <string_view>

#include "io/pickle_values.hpp"

// The closed list of what a pickle may name and call. Nothing outside of it is looked up anywhere.
namespace sconce::io {

/// Returns what the pickle names.
/// @throw c10::Error naming it, if it is not on the list.
c10::IValue find_global(std::string_view module, std::string_view name, const Place& place);

/// Returns what Python makes of calling a global with a tuple.
/// @throw c10::Error if the global is not one to call, if the arguments are not those that
/// torch.save writes, if a tensor reaches beyond its storage.
c10::IValue call_global(const c10::IValue& global, const c10::IValue& arguments,
                        Containers& containers, const Place& place);

/// Returns the type of the elements, if the global is a class of storages.
/// @throw c10::Error if it is something else.
c10::ScalarType storage_type(const c10::IValue& global, const Place& place);

}  // namespace sconce::io
