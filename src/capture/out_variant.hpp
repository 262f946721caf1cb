#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace sconce::detail {

/// Returns the variant of a functional operator that writes its results to existing tensors, such
/// as `aten::mm.out` for `aten::mm`. Returns std::nullopt if no such variant exists, or if the
/// variant calls the functional operator and copies its results.
std::optional<c10::OperatorHandle> out_variant(const c10::OperatorHandle& op);

}  // namespace sconce::detail
