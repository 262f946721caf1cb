#pragma once

#include <functional>

#include "program/tracer.hpp"

namespace sconce::program::detail {

/// Runs the function and adds each operator that it calls to the tracer, at the level at which the
/// function calls it: an operator that composes others is one call. With autocast it is one level
/// below, so that the casts are calls.
/// @throw c10::Error for what a program cannot contain; what the function throws.
void observe_operators(Tracer& tracer, const std::function<void()>& function);

}  // namespace sconce::program::detail
