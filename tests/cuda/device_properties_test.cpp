#include "sconce/cuda/device_properties.hpp"

#include <ATen/detail/CUDAHooksInterface.h>

#include <iostream>

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;

TEST_CASE("get_device_properties rejects the CPU and nonexistent GPUs") {
  CHECK_THROWS_WITH(sconce::cuda::get_device_properties(sconce::cpu()),
                    ContainsSubstring("sconce::cuda::get_device_properties: expected ") &&
                        ContainsSubstring("got cpu"));
  CHECK_THROWS_WITH(sconce::cuda::get_device_properties(sconce::gpu(127)),
                    ContainsSubstring("got cuda:127"));
}

TEST_CASE("get_device_properties reports the name, memory, and compute capability of a GPU",
          "[gpu]") {
  sconce::test::require_gpu();
  if (!SCONCE_HAS_CUDA_SOURCES) {
    CHECK_THROWS_WITH(sconce::cuda::get_device_properties(sconce::gpu()),
                      ContainsSubstring("sconce was built without CUDA"));
    return;
  }
  const auto properties = sconce::cuda::get_device_properties(sconce::gpu());
  // The results file of the `gpu` preset includes this line to record which GPU ran the tests.
  std::cout << properties.name << ", compute capability " << properties.major << '.'
            << properties.minor << ", LibTorch " << TORCH_VERSION << ", CUDA "
            << at::detail::getCUDAHooks().versionCUDART() << '\n';
  CHECK_FALSE(properties.name.empty());
  CHECK(properties.major >= 5);
  CHECK(properties.total_memory > int64_t{1} << 30);
  CHECK(properties.multi_processor_count > 0);
}

TEST_CASE("a convolution on a GPU runs in cuDNN and matches the CPU", "[gpu]") {
  sconce::test::require_gpu();
  REQUIRE(torch::cuda::cudnn_is_available());
  torch::manual_seed(0);
  // In double precision, the sums agree closely regardless of the algorithm that cuDNN chooses.
  const auto x = torch::rand({2, 3, 32, 32}, torch::kDouble);
  const auto weight = torch::rand({8, 3, 3, 3}, torch::kDouble);
  const auto there = torch::cudnn_convolution(
      x.to(sconce::gpu()), weight.to(sconce::gpu()), {1, 1}, {1, 1}, {1, 1}, /*groups=*/1,
      /*benchmark=*/false, /*deterministic=*/true, /*allow_tf32=*/false);
  const auto here = torch::conv2d(x, weight, {}, 1, 1);
  CHECK(torch::allclose(there.cpu(), here, 1e-7, 1e-7));
}
