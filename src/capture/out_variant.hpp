#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace sconce::detail {

/// Returns the variant of a functional operator that writes its results into given tensors, such
/// as `aten::mm.out` for `aten::mm`. Returns nothing if there is none, or if it is one that calls
/// the functional operator and copies.
std::optional<c10::OperatorHandle> out_variant(const c10::OperatorHandle& op);

}  // namespace sconce::detail
