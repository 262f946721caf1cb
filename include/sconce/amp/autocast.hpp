#pragma once

#include <optional>

#include "sconce/fwd.hpp"

namespace sconce::amp {

/// Options of `AutocastGuard`: the arguments of `torch.autocast` with Python's names and defaults.
struct AutocastOptions {
  /// Type for operations in lower precision, float16 or bfloat16. Without a value it is the type
  /// that is set for the device in this thread: bfloat16 on the CPU and float16 on GPUs at first.
  std::optional<torch::ScalarType> dtype = {};
  bool enabled = true;  ///< whether autocast is on; false turns it off inside an outer scope
  /// Whether casts of parameters are kept until the outermost scope ends. Without a value nothing
  /// changes.
  std::optional<bool> cache_enabled = {};
};

/// Runs the operations of its scope in mixed precision. On tensors of the device type, matrix
/// products and convolutions compute in `dtype`, and operations that need a wide range compute in
/// float32. The guard changes the autocast state of the calling thread only, and restores it at the
/// end of the scope. The end of a thread's outermost scope drops the cached casts of all threads.
/// Guards must end in reverse order, in the thread in which they began. Leave the scope before
/// `backward()`, as in Python. Without CUDA a scope for GPUs warns and is disabled; the same holds
/// for a dtype that autocast does not support on the device. Python: `torch.autocast`.
class [[nodiscard]] AutocastGuard {
 public:
  /// @throw c10::Error if autocast does not support the device type.
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
