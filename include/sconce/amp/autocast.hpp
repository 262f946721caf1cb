#pragma once

#include <optional>

#include "sconce/fwd.hpp"

namespace sconce::amp {

/// The arguments of `torch.autocast` besides the device, with Python's names and defaults.
struct AutocastOptions {
  /// What operations of lower precision compute in: float16 or bfloat16. Empty: what is set for the
  /// device in this thread, at first bfloat16 on the CPU and float16 on GPUs.
  std::optional<torch::ScalarType> dtype = {};
  bool enabled = true;  ///< false switches autocast off within an outer scope
  /// Whether a parameter's cast is kept until the outermost scope ends. Empty: as it is set.
  std::optional<bool> cache_enabled = {};
};

/// Runs the operations of its scope in mixed precision: on tensors of the device's type, matrix
/// products and convolutions compute in `dtype`, those that need range in float32. Changes the
/// autocast state of the calling thread only, and puts it back at the end of the scope; the end of
/// the thread's outermost scope drops the cached casts of all threads. Guards end in the reverse
/// order in which they began, in their own thread. Leave the scope before `backward()`, as in
/// Python. On a machine without CUDA a scope for GPUs warns and is disabled; so is one for another
/// device with a dtype that autocast does not support there. Python: `torch.autocast`.
class [[nodiscard]] AutocastGuard {
 public:
  /// @throw c10::Error if autocast does not know the type of device.
  explicit AutocastGuard(torch::DeviceType device_type, AutocastOptions options = {});
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  torch::DeviceType device_type_;
  bool previous_enabled_;
  torch::ScalarType previous_dtype_;
  bool previous_cache_enabled_;
};

}  // namespace sconce::amp
