#pragma once

#include <ATen/core/operator_name.h>

#include <functional>
#include <unordered_set>

#include "program/tracer.hpp"

namespace sconce::program::detail {

/// Operators that are recorded as the operators that they call. For example, autocast casts within
/// some operators.
using OperatorNames = std::unordered_set<c10::OperatorName>;

/// Runs the function and adds each operator that the function calls directly to the tracer. An
/// operator that calls other operators is recorded as one call, unless it is in `opened`. If
/// autocast casts within other operators, adds these to `opened` and returns false. In that case,
/// call this function again with a new tracer.
/// @throw c10::Error if a program cannot contain a call, and any error from the function.
bool observe_operators(Tracer& tracer, OperatorNames& opened,
                       const std::function<void()>& function);

}  // namespace sconce::program::detail
