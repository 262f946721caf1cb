#pragma once

#include "io/pickle_values.hpp"

namespace sconce::io {

/// How deep containers may lie in each other: who walks them uses the stack.
constexpr size_t max_depth = 1000;

/// Returns a value as LibTorch's type, one for a container or text that stands in many places.
/// @throw c10::Error, beginning with `who` and naming the byte of the container, if it holds itself
/// or a type or storage, lies too deep, or is a dict with keys that are neither str nor int.
c10::IValue to_ivalue(const Value& value, const Values& values, const std::string& who);

}  // namespace sconce::io
