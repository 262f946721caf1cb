#pragma once

#include <ATen/core/operator_name.h>

#include <functional>
#include <unordered_set>

#include "program/tracer.hpp"

namespace sconce::program::detail {

/// Operators in whose place the operators that they call are recorded, such as those within which
/// autocast casts.
using OperatorNames = std::unordered_set<c10::OperatorName>;

/// Runs the function and adds each operator that it calls to the tracer, at the level at which the
/// function calls it: an operator that composes others is one call, unless it is one of `opened`.
/// Adds operators to `opened` and returns false if autocast has cast within others: then call it
/// again, with a new tracer.
/// @throw c10::Error for what a program cannot contain; what the function throws.
bool observe_operators(Tracer& tracer, OperatorNames& opened,
                       const std::function<void()>& function);

}  // namespace sconce::program::detail
