#include "sconce/backends.hpp"

#include <ATen/Context.h>
#include <c10/util/Exception.h>

#include <array>

namespace sconce::backends {

namespace {

std::string name_of(at::Float32MatmulPrecision precision) {
  if (precision == at::Float32MatmulPrecision::HIGHEST) return "highest";
  return precision == at::Float32MatmulPrecision::HIGH ? "high" : "medium";
}

void check(const Flags& flags) {
  if (!flags.float32_matmul_precision) return;
  const auto& precision = *flags.float32_matmul_precision;
  TORCH_CHECK(precision == "highest" || precision == "high" || precision == "medium",
              "sconce::backends::set_flags: expected a float32_matmul_precision of highest, high, "
              "or medium, got '",
              precision, "'");
}

// Reads only the settings that `flags` changes, because reading some settings throws if they were
// set through other LibTorch interfaces.
Flags read_flags(const Flags& flags) {
  auto& now = at::globalContext();
  Flags read;
  if (flags.float32_matmul_precision) {
    read.float32_matmul_precision = name_of(now.float32MatmulPrecision());
  }
  if (flags.cudnn_allow_tf32) read.cudnn_allow_tf32 = now.allowTF32CuDNN();
  if (flags.cudnn_benchmark) read.cudnn_benchmark = now.benchmarkCuDNN();
  if (flags.cudnn_deterministic) read.cudnn_deterministic = now.deterministicCuDNN();
  if (flags.deterministic_algorithms) read.deterministic_algorithms = now.deterministicAlgorithms();
  return read;
}

// The backends whose precision is determined by LibTorch's global setting for matrix products.
constexpr std::array matmul_backends = {at::Float32Backend::CUDA, at::Float32Backend::MKLDNN};

void set(const Flags& flags, bool warn_only) {
  auto& now = at::globalContext();
  if (flags.float32_matmul_precision) {
    now.setFloat32MatmulPrecision(*flags.float32_matmul_precision);
  }
  if (flags.cudnn_allow_tf32) now.setAllowTF32CuDNN(*flags.cudnn_allow_tf32);
  if (flags.cudnn_benchmark) now.setBenchmarkCuDNN(*flags.cudnn_benchmark);
  if (flags.cudnn_deterministic) now.setDeterministicCuDNN(*flags.cudnn_deterministic);
  if (flags.deterministic_algorithms) {
    now.setDeterministicAlgorithms(*flags.deterministic_algorithms, warn_only);
  }
}

}  // namespace

void set_flags(const Flags& flags) {
  check(flags);
  set(flags, /*warn_only=*/false);
}

FlagsGuard::FlagsGuard(const Flags& flags)
    : before_(read_flags(flags)),
      warn_only_before_(at::globalContext().deterministicAlgorithmsWarnOnly()) {
  for (size_t i = 0; i < matmul_backends.size(); ++i) {
    matmul_before_[i] = static_cast<int>(
        at::globalContext().float32Precision(matmul_backends[i], at::Float32Op::MATMUL));
  }
  set_flags(flags);
}

FlagsGuard::~FlagsGuard() {
  set(before_, warn_only_before_);
  if (!before_.float32_matmul_precision) return;
  for (size_t i = 0; i < matmul_backends.size(); ++i) {
    at::globalContext().setFloat32Precision(matmul_backends[i], at::Float32Op::MATMUL,
                                            static_cast<at::Float32Precision>(matmul_before_[i]));
  }
}

}  // namespace sconce::backends
