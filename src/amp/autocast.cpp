#include "sconce/amp/autocast.hpp"

#include <ATen/autocast_mode.h>

#include "sconce/devices.hpp"

namespace sconce::amp {

namespace {

torch::DeviceType checked(torch::DeviceType device_type) {
  TORCH_CHECK(at::autocast::is_autocast_available(device_type),
              "sconce::amp::AutocastGuard: expected a device type that autocast supports, got ",
              device_type);
  return device_type;
}

// Returns whether autocast supports the device and dtype, and warns if it does not. As in Python,
// any dtype is accepted on a GPU. Python's check for bfloat16 returns true for all GPUs, because it
// includes emulation.
bool can_enable(torch::DeviceType device_type, torch::ScalarType dtype) {
  if (device_type == c10::kCUDA) {
    if (num_gpus() > 0) return true;
    TORCH_WARN("sconce::amp::AutocastGuard: CUDA is not available. Disabling autocast.");
    return false;
  }
  if (dtype == c10::kBFloat16 || dtype == c10::kHalf) return true;
  TORCH_WARN("sconce::amp::AutocastGuard: on ", device_type,
             " autocast supports BFloat16 and Half, got ", dtype, ". Disabling autocast.");
  return false;
}

}  // namespace

AutocastGuard::AutocastGuard(torch::DeviceType device_type, AutocastOptions options)
    : device_type_(checked(device_type)),
      previous_enabled_(at::autocast::is_autocast_enabled(device_type)),
      previous_dtype_(at::autocast::get_autocast_dtype(device_type)),
      previous_cache_enabled_(at::autocast::is_autocast_cache_enabled()) {
  const auto dtype = options.dtype.value_or(previous_dtype_);
  const bool enabled = options.enabled && can_enable(device_type, dtype);
  at::autocast::set_autocast_enabled(device_type, enabled);
  at::autocast::set_autocast_dtype(device_type, dtype);
  at::autocast::increment_nesting();
  at::autocast::set_autocast_cache_enabled(options.cache_enabled.value_or(previous_cache_enabled_));
}

AutocastGuard::~AutocastGuard() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_type_, previous_enabled_);
  at::autocast::set_autocast_dtype(device_type_, previous_dtype_);
  at::autocast::set_autocast_cache_enabled(previous_cache_enabled_);
}

}  // namespace sconce::amp
