#include "sconce/report/environment.hpp"

#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/version.h>

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "support/fake_environment.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::Environment;
using sconce::GpuStatus;
using sconce::test::fake_environment;

namespace {

// Returns the environment of a machine whose only GPU is not visible to LibTorch.
Environment none() {
  Environment facts = fake_environment();
  facts.torch.num_gpus = 0;
  return facts;
}

void check_verdict(const Environment& facts, GpuStatus verdict, const std::string& part) {
  CHECK(gpu_status(facts) == verdict);
  const std::string text = gpu_status_text(facts);
  CHECK_THAT(text, ContainsSubstring(part));
  CHECK(text.find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE("the GPU verdict is 'usable' if LibTorch finds a GPU") {
  check_verdict(fake_environment(), GpuStatus::usable, "1 GPU (H) can be used");
  Environment no_nvml = fake_environment();  // as in a container with only CUDA
  no_nvml.driver = {.error = "cannot load libnvidia-ml.so.1"};
  check_verdict(no_nvml, GpuStatus::usable, "1 GPU (cuda:0) can be used");
}

TEST_CASE("the GPU verdict is no_driver without a driver, regardless of the LibTorch build") {
  Environment facts = none();
  facts.driver = {.error = "cannot load libnvidia-ml.so.1"};
  check_verdict(facts, GpuStatus::no_driver, "no working NVIDIA driver");
  facts.torch.built_with_cuda = facts.torch.cuda_loaded = false;
  check_verdict(facts, GpuStatus::no_driver, "no working NVIDIA driver");
}

TEST_CASE("the GPU verdict is cpu_build if a driver is present but LibTorch is a CPU build") {
  Environment facts = none();
  facts.torch.built_with_cuda = facts.torch.cuda_loaded = false;
  facts.torch.cuda.clear();
  check_verdict(facts, GpuStatus::cpu_build, "LibTorch is a CPU build");
}

TEST_CASE("the GPU verdict is cuda_not_loaded if the program does not load libtorch_cuda") {
  Environment facts = none();
  facts.torch.cuda_loaded = false;
  check_verdict(facts, GpuStatus::cuda_not_loaded, "libtorch_cuda is not loaded");
}

TEST_CASE("the GPU verdict is driver_too_old if the driver supports only an older CUDA") {
  Environment facts = none();
  facts.driver.cuda = "12.9";
  check_verdict(facts, GpuStatus::driver_too_old,
                "580.1 is too old; it supports CUDA up to 12.9, LibTorch needs CUDA 13.2");
  facts.visible_devices = "";  // unsetting it would not help
  check_verdict(facts, GpuStatus::driver_too_old, "too old");
}

TEST_CASE("the GPU verdict is 'hidden' if CUDA_VISIBLE_DEVICES hides all GPUs") {
  Environment facts = none();
  facts.visible_devices = "-1";
  check_verdict(facts, GpuStatus::hidden,
                "CUDA_VISIBLE_DEVICES='-1' hides all GPUs on this machine (1)");
  facts.visible_devices = "-1\n2";  // still one line
  check_verdict(facts, GpuStatus::hidden,
                "CUDA_VISIBLE_DEVICES='-1 2' hides all GPUs on this machine (1)");
}

TEST_CASE("the GPU verdict is 'unusable' if no GPU is found for an unknown reason") {
  check_verdict(none(), GpuStatus::unusable, "the driver lists 1, but CUDA cannot use any");
  Environment facts = none();
  facts.driver.gpus.clear();
  check_verdict(facts, GpuStatus::unusable, "the driver lists 0");
}

TEST_CASE("gpu_names lists GPUs in CUDA's order") {
  Environment facts = fake_environment();
  facts.torch.num_gpus = 3;
  facts.driver.gpus = {{.index = 1, .name = "B"}, {.name = "hidden"}, {.index = 0, .name = "A"}};
  CHECK(gpu_names(facts) == "3 GPUs (A, B, cuda:2)");
  CHECK(gpu_names(Environment{}) == "0 GPUs");
}

TEST_CASE("environment() reports this process's build and machine") {
  const auto facts = sconce::environment();
  CHECK(facts.torch.version == TORCH_VERSION);
  CHECK(facts.torch.num_gpus == sconce::num_gpus());
  CHECK(facts.torch.cuda_loaded == !facts.torch.cuda.empty());
  CHECK((gpu_status(facts) == GpuStatus::usable) == (sconce::num_gpus() > 0));
}

TEST_CASE("on a GPU, reading the environment creates no CUDA context", "[gpu][alone]") {
  sconce::test::require_gpu();
  const auto facts = sconce::environment();
  CHECK(gpu_status(facts) == GpuStatus::usable);
  for (int i = 0; i < sconce::num_gpus(); ++i) {
    CHECK_FALSE(at::detail::getCUDAHooks().hasPrimaryContext(static_cast<c10::DeviceIndex>(i)));
  }
}
