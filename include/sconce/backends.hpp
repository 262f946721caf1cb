#pragma once

#include <optional>
#include <string>

namespace sconce::backends {

/// How LibTorch computes on GPUs, and on CPUs that know bfloat16: settings of the whole process.
/// What is empty is left as it is.
struct Flags {
  /// "highest", "high" or "medium": what products of float32 may round their factors to.
  /// Python: `torch.set_float32_matmul_precision`.
  std::optional<std::string> float32_matmul_precision = {};
  /// TF32 in convolutions. Python: `torch.backends.cudnn.allow_tf32`.
  std::optional<bool> cudnn_allow_tf32 = {};
  /// Tries the algorithms of a convolution where its shapes are new, and keeps the fastest.
  /// Python: `torch.backends.cudnn.benchmark`.
  std::optional<bool> cudnn_benchmark = {};
  /// Algorithms of convolutions that repeat bit for bit. Python:
  /// `torch.backends.cudnn.deterministic`.
  std::optional<bool> cudnn_deterministic = {};
  /// An operation without an algorithm that repeats throws; CUDA's products want the environment
  /// variable CUBLAS_WORKSPACE_CONFIG=:4096:8 too. Python: `torch.use_deterministic_algorithms`.
  std::optional<bool> deterministic_algorithms = {};
};

/// Sets them for good.
/// @throw c10::Error, before anything is set, if `float32_matmul_precision` is none of the three.
void set_flags(const Flags& flags);

/// Sets them for its scope, and puts back what they were. Other threads see them too.
/// Python: `torch.backends.cudnn.flags`.
class [[nodiscard]] FlagsGuard {
 public:
  /// @throw c10::Error as `set_flags`.
  explicit FlagsGuard(const Flags& flags);
  ~FlagsGuard();
  FlagsGuard(const FlagsGuard&) = delete;
  FlagsGuard& operator=(const FlagsGuard&) = delete;

 private:
  Flags before_;
  bool warn_only_before_;  // of the deterministic algorithms
};

}  // namespace sconce::backends
