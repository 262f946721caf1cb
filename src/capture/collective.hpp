#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace sconce::detail {

/// Runs a LibTorch collective operator with the given arguments and waits until it finishes.
/// @throw c10::Error if another process fails or times out.
void run_collective(const c10::OperatorHandle& op, torch::jit::Stack arguments);

}  // namespace sconce::detail
