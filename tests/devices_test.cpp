#include "sconce/devices.hpp"

#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <string_view>

#include "catch.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;

TEST_CASE("cpu returns the CPU device") {
  CHECK(sconce::cpu() == torch::Device("cpu"));
  CHECK(sconce::cpu().str() == "cpu");
}

TEST_CASE("gpu returns a CUDA device even if that GPU does not exist") {
  CHECK(sconce::gpu() == torch::Device("cuda:0"));
  CHECK(sconce::gpu(1) == torch::Device("cuda:1"));
  CHECK(sconce::gpu(127).index() == 127);
  CHECK(sconce::gpu(127).is_cuda());
}

TEST_CASE("gpu rejects an index that torch::Device cannot store, and the error names the index") {
  // Without the check, Device(kCUDA, 256) would be GPU 0, and Device(kCUDA, 300) would be GPU 44.
  const int index = GENERATE(-1, -129, 128, 256, 300);
  CHECK_THROWS_WITH(sconce::gpu(index),
                    ContainsSubstring("sconce::gpu: expected an index from 0 to 127, got " +
                                      std::to_string(index)));
  CHECK_THROWS_AS(sconce::gpu(index), c10::Error);
}

TEST_CASE("num_gpus returns the same number as torch::cuda::device_count") {
  CHECK(sconce::num_gpus() == static_cast<int>(torch::cuda::device_count()));
  STATIC_CHECK(noexcept(sconce::num_gpus()));
}

TEST_CASE("try_gpu falls back to the CPU if the GPU does not exist") {
  CHECK(sconce::try_gpu(sconce::num_gpus()) == sconce::cpu());
  CHECK(sconce::try_gpu(127) == sconce::cpu());
  CHECK(sconce::try_gpu(256) == sconce::cpu());
  if (sconce::num_gpus() == 0) CHECK(sconce::try_gpu() == sconce::cpu());
}

TEST_CASE("try_gpu rejects a negative index, and the error names the index") {
  CHECK_THROWS_WITH(sconce::try_gpu(-1),
                    ContainsSubstring("sconce::try_gpu: expected a non-negative index, got -1"));
}

TEST_CASE("try_all_gpus returns every GPU, or the CPU if there is no GPU") {
  const auto devices = sconce::try_all_gpus();
  REQUIRE(devices.size() == static_cast<size_t>(std::max(1, sconce::num_gpus())));
  CHECK(devices.front() == sconce::try_gpu());
}

TEST_CASE("synchronize returns immediately for the CPU and rejects devices that do not exist") {
  CHECK_NOTHROW(sconce::synchronize(sconce::cpu()));
  CHECK_THROWS_WITH(sconce::synchronize(sconce::gpu(127)),
                    ContainsSubstring("sconce::synchronize: expected the CPU or one of ") &&
                        ContainsSubstring("got cuda:127"));
  CHECK_THROWS_WITH(sconce::synchronize(torch::Device("meta")),
                    ContainsSubstring("expected a CPU or CUDA device, got meta"));
}

TEST_CASE("a profile records every synchronize call, including calls for the CPU") {
  static int waits;
  waits = 0;
  const auto count = [](const at::RecordFunction& call) {
    if (std::string_view(call.name()) == "sconce::synchronize") ++waits;
    return std::unique_ptr<at::ObserverContext>();
  };
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(count));
  sconce::synchronize(sconce::try_gpu());
  sconce::synchronize(sconce::cpu());
  at::removeCallback(handle);
  CHECK(waits == 2);
}

TEST_CASE("tensors can be copied to and from every GPU that try_all_gpus returns", "[gpu]") {
  sconce::test::require_gpu();
  for (const auto& device : sconce::try_all_gpus()) {
    const auto there = torch::arange(6).to(device);
    CHECK(there.device() == device);
    sconce::synchronize(device);
    CHECK(there.cpu().equal(torch::arange(6)));
  }
}

TEST_CASE("synchronize waits for the work queued on a GPU", "[gpu]") {
  sconce::test::require_gpu();
  const auto device = sconce::gpu();
  auto x = torch::rand({1024, 1024}, device);
  for (int i = 0; i < 20; ++i) x = torch::mm(x, x).div_(1024);
  auto copied = torch::empty({1024, 1024}).pin_memory();
  copied.copy_(x, /*non_blocking=*/true);
  sconce::synchronize(device);
  const c10::impl::VirtualGuardImpl guard(torch::kCUDA);
  CHECK(guard.queryStream(guard.getStream(device)));
}
