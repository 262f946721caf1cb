#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace simgpu {

/// Bypasses autograd, autocast, and profilers for calls made by a kernel.
struct BelowAutograd {
  at::AutoDispatchBelowADInplaceOrView below = {};
  at::DisableRecordFunctionGuard unseen = {};
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

}  // namespace simgpu
