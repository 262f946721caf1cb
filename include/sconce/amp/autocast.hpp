#pragma once

#include <optional>

#include "sconce/fwd.hpp"

namespace sconce::amp {

/// Options for `AutocastGuard`. Names and defaults match the arguments of `torch.autocast`.
struct AutocastOptions {
  /// Lower-precision type for computations: float16 or bfloat16. Defaults to this thread's current
  /// autocast type for the device, which is initially bfloat16 on the CPU and float16 on GPUs.
  std::optional<torch::ScalarType> dtype = {};
  bool enabled = true;  ///< whether autocast is enabled; `false` overrides an enclosing scope
  /// Whether casts of parameters are cached until the outermost scope ends. By default, the current
  /// setting is kept.
  std::optional<bool> cache_enabled = {};
};

/// Enables mixed precision for the operations in its scope. For tensors on `device_type`, matrix
/// products and convolutions run in `dtype`, and operations that require a wide dynamic range run
/// in float32.
///
///     torch::Tensor loss;
///     {
///       const amp::AutocastGuard autocast(torch::kCUDA);
///       loss = torch::mse_loss(net->forward(x), y);
///     }
///     loss.backward();
///
/// Close the scope before you call `backward()`, as in Python. The guard changes only the calling
/// thread's autocast state and restores it on destruction. Destroy nested guards in reverse order,
/// on the thread that created them. When the outermost scope of any thread ends, the cached casts
/// of all threads are cleared.
///
/// If the device type is CUDA and CUDA is not available, or if autocast does not support `dtype` on
/// the device, the guard warns and disables autocast in its scope.
/// Python: `torch.autocast`.
class [[nodiscard]] AutocastGuard {
 public:
  /// @throw c10::Error if autocast does not support `device_type`.
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
