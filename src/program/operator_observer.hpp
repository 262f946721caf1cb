#pragma once

#include <ATen/core/operator_name.h>

#include <functional>
#include <unordered_set>

#include "program/tracer.hpp"

namespace sconce::program::detail {

/// Operators that are not recorded as calls. Instead, the operators that they call are recorded.
/// For example, autocast casts tensors within some operators.
using OperatorNames = std::unordered_set<c10::OperatorName>;

/// Runs the function and adds each operator that the function calls directly to the tracer. An
/// operator that calls other operators is recorded as a single call, unless `opened` contains it.
/// If autocast casts tensors within other operators, adds these operators to `opened` and returns
/// false. In that case, the caller must call this function again with a new tracer.
/// @throw c10::Error if a program cannot contain a call. Also throws any error from the function.
bool observe_operators(Tracer& tracer, OperatorNames& opened,
                       const std::function<void()>& function);

}  // namespace sconce::program::detail
