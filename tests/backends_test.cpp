#include "sconce/backends.hpp"

#include <ATen/Context.h>

#include "catch.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::StartsWith;
using sconce::backends::Flags;
using sconce::backends::FlagsGuard;
using sconce::backends::set_flags;
using sconce::test::error_of;

TEST_CASE("FlagsGuard sets LibTorch's flags and restores them at the end of its scope") {
  auto& now = at::globalContext();
  const bool tf32 = now.allowTF32CuDNN();
  const bool benchmark = now.benchmarkCuDNN();
  const bool deterministic = now.deterministicCuDNN();
  {
    const FlagsGuard guard({.float32_matmul_precision = "medium",
                            .cudnn_allow_tf32 = !tf32,
                            .cudnn_benchmark = !benchmark,
                            .cudnn_deterministic = !deterministic,
                            .deterministic_algorithms = true});
    CHECK(now.float32MatmulPrecision() == at::Float32MatmulPrecision::MEDIUM);
    CHECK(now.allowTF32CuDNN() == !tf32);
    CHECK(now.benchmarkCuDNN() == !benchmark);
    CHECK(now.deterministicCuDNN() == !deterministic);
    CHECK(now.deterministicAlgorithms());
    CHECK_FALSE(now.deterministicAlgorithmsWarnOnly());
  }
  CHECK(now.float32MatmulPrecision() == at::Float32MatmulPrecision::HIGHEST);
  CHECK(now.allowTF32CuDNN() == tf32);
  CHECK(now.benchmarkCuDNN() == benchmark);
  CHECK(now.deterministicCuDNN() == deterministic);
  CHECK_FALSE(now.deterministicAlgorithms());
}

TEST_CASE("FlagsGuard restores the matmul precision of every backend") {
  using at::Float32Backend, at::Float32Op, at::Float32Precision;
  auto& now = at::globalContext();
  for (const auto before : {Float32Precision::NONE, Float32Precision::IEEE}) {
    for (const auto on : {Float32Backend::CUDA, Float32Backend::MKLDNN}) {
      now.setFloat32Precision(on, Float32Op::MATMUL, before);
    }
    {
      const FlagsGuard guard({.float32_matmul_precision = "high"});
      CHECK(now.float32Precision(Float32Backend::CUDA, Float32Op::MATMUL) ==
            Float32Precision::TF32);
    }
    for (const auto on : {Float32Backend::CUDA, Float32Backend::MKLDNN}) {
      CHECK(now.float32Precision(on, Float32Op::MATMUL) == before);
    }
  }
}

TEST_CASE("unset flags keep their values, and FlagsGuard restores the flags that it changed") {
  auto& now = at::globalContext();
  now.setDeterministicAlgorithms(true, /*warn_only=*/true);
  {
    const FlagsGuard nothing({});
    CHECK(now.deterministicAlgorithmsWarnOnly());
    const FlagsGuard guard({.deterministic_algorithms = false});
    CHECK_FALSE(now.deterministicAlgorithms());
  }
  CHECK(now.deterministicAlgorithms());
  CHECK(now.deterministicAlgorithmsWarnOnly());
  set_flags({.deterministic_algorithms = false});
  CHECK_FALSE(now.deterministicAlgorithms());
}

TEST_CASE("an unknown float32_matmul_precision is rejected before any flag is set") {
  const bool benchmark = at::globalContext().benchmarkCuDNN();
  const Flags wrong = {.float32_matmul_precision = "tf32", .cudnn_benchmark = !benchmark};
  const auto expected = StartsWith(
      "sconce::backends::set_flags: expected a float32_matmul_precision of highest, high, or "
      "medium, got 'tf32'");
  CHECK_THAT(error_of([&] { set_flags(wrong); }), expected);
  CHECK_THAT(error_of([&] { const FlagsGuard guard(wrong); }), expected);
  CHECK(at::globalContext().benchmarkCuDNN() == benchmark);
}
