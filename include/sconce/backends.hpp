#pragma once

#include <array>
#include <optional>
#include <string>

namespace sconce::backends {

/// How LibTorch computes on GPUs, and on CPUs that support bfloat16. These are settings of the
/// whole process. An empty field leaves its setting unchanged.
struct Flags {
  /// Precision of float32 matrix products: "highest", "high" or "medium". The last two may round
  /// the factors to a smaller type.
  /// Python: `torch.set_float32_matmul_precision`.
  std::optional<std::string> float32_matmul_precision = {};
  /// Whether cuDNN's convolutions and recurrent layers may use TF32, as they do by default.
  /// Python: `torch.backends.cudnn.allow_tf32`.
  std::optional<bool> cudnn_allow_tf32 = {};
  /// Whether to try all algorithms of a convolution at each new shape and keep the fastest.
  /// Python: `torch.backends.cudnn.benchmark`.
  std::optional<bool> cudnn_benchmark = {};
  /// Whether convolutions use only algorithms that give bit-for-bit the same results each time.
  /// Python: `torch.backends.cudnn.deterministic`.
  std::optional<bool> cudnn_deterministic = {};
  /// Whether an operation without a deterministic algorithm throws. CUDA's matrix products also
  /// need the environment variable CUBLAS_WORKSPACE_CONFIG=:4096:8. Python:
  /// `torch.use_deterministic_algorithms`.
  std::optional<bool> deterministic_algorithms = {};
};

/// Applies the flags, for the rest of the process.
/// @throw c10::Error if `float32_matmul_precision` is not one of the three names; nothing is set
/// then.
void set_flags(const Flags& flags);

/// Applies the flags while it lives, then restores the previous settings. Other threads see the
/// change too. Python: `torch.backends.cudnn.flags`.
class [[nodiscard]] FlagsGuard {
 public:
  /// @throw c10::Error under the same conditions as `set_flags`.
  explicit FlagsGuard(const Flags& flags);
  ~FlagsGuard();
  FlagsGuard(const FlagsGuard&) = delete;
  FlagsGuard& operator=(const FlagsGuard&) = delete;

 private:
  Flags before_;
  bool warn_only_before_;                  // of deterministic_algorithms
  std::array<int, 2> matmul_before_ = {};  // at::Float32Precision of CUDA's and of MKL-DNN's matmul
};

}  // namespace sconce::backends
