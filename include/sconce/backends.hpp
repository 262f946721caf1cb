#pragma once

#include <array>
#include <optional>
#include <string>

namespace sconce::backends {

/// LibTorch settings for computations on GPUs, and on CPUs that support bfloat16. The settings
/// apply to the whole process. An unset field leaves the corresponding setting unchanged.
struct Flags {
  /// Precision of float32 matrix products: "highest", "high", or "medium". "high" and "medium"
  /// allow LibTorch to round the operands to a lower-precision type.
  /// Python: `torch.set_float32_matmul_precision`.
  std::optional<std::string> float32_matmul_precision = {};
  /// Whether cuDNN may use TF32 in convolutions and recurrent layers. By default, it may.
  /// Python: `torch.backends.cudnn.allow_tf32`.
  std::optional<bool> cudnn_allow_tf32 = {};
  /// Whether to benchmark all convolution algorithms for each new shape and use the fastest one.
  /// Python: `torch.backends.cudnn.benchmark`.
  std::optional<bool> cudnn_benchmark = {};
  /// Whether convolutions use only deterministic algorithms, which produce bitwise identical
  /// results in every run.
  /// Python: `torch.backends.cudnn.deterministic`.
  std::optional<bool> cudnn_deterministic = {};
  /// Whether operations without a deterministic algorithm throw an error. For deterministic matrix
  /// products on CUDA, also set the CUBLAS_WORKSPACE_CONFIG environment variable to `:4096:8`.
  /// Python: `torch.use_deterministic_algorithms`.
  std::optional<bool> deterministic_algorithms = {};
};

/// Applies the flags for the rest of the process.
/// @throw c10::Error if `float32_matmul_precision` is not one of the three values. In that case, no
/// flag is set.
void set_flags(const Flags& flags);

/// Applies flags for the lifetime of the guard, then restores the previous settings. The flags
/// apply to all threads.
///
///     const backends::FlagsGuard flags({.cudnn_benchmark = true});
///
/// Python: `torch.backends.cudnn.flags`.
class [[nodiscard]] FlagsGuard {
 public:
  /// @throw c10::Error under the same conditions as `set_flags`.
  explicit FlagsGuard(const Flags& flags);
  ~FlagsGuard();
  FlagsGuard(const FlagsGuard&) = delete;
  FlagsGuard& operator=(const FlagsGuard&) = delete;

 private:
  Flags before_;
  bool warn_only_before_;                  // previous warn_only mode of deterministic_algorithms
  std::array<int, 2> matmul_before_ = {};  // at::Float32Precision for CUDA and MKL-DNN matmul
};

}  // namespace sconce::backends
