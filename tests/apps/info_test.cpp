// Tests the output of sconce-info for simulated hardware configurations.
#include <nlohmann/json.hpp>
#include <sstream>

#include "catch.hpp"
#include "info/machine_text.hpp"
#include "sconce/version.hpp"
#include "support/fake_environment.hpp"

using apps::Machine;
using Catch::Matchers::ContainsSubstring;
using sconce::GpuStatus;

namespace {

Machine a_machine() {
  return {.environment = sconce::test::fake_environment(),
          .sconce = "0.1.0",
          .compiler = "GCC 12.2.0",
          .standard = "C++20",
          .cpu = "CPU",
          .cores = 8,
          .num_threads = 4};
}

}  // namespace

TEST_CASE(
    "sconce-info prints known values in its table and JSON and marks unavailable values as "
    "unknown") {
  Machine machine = a_machine();
  machine.variables = {{"OMP_NUM_THREADS", "4"}, {"LD_PRELOAD", "\xff\"\n"}};
  machine.environment.driver.gpus.push_back({.name = "bad \xc3 byte"});
  std::ostringstream table;
  table << machine;
  CHECK_THAT(table.str(), ContainsSubstring("LibTorch      2.15.0, a CUDA build of CUDA 13.2\n"));
  CHECK_THAT(table.str(), ContainsSubstring("cuda:0        H, 1024 MiB, bus unknown\n"));
  CHECK_THAT(table.str(), ContainsSubstring("other GPU     bad "));
  CHECK_THAT(table.str(), ContainsSubstring("variable      OMP_NUM_THREADS=4\n"));
  const auto json = nlohmann::json::parse(to_json(machine));
  CHECK(json.at("driver").at("gpus").at(0).at("memory_total") == int64_t{1} << 30);
  CHECK(json.at("driver").at("gpus").at(0).at("utilization").is_null());
  CHECK(json.at("driver").at("gpus").at(1).at("name") == "bad \xef\xbf\xbd byte");
  CHECK(json.at("variables").at("OMP_NUM_THREADS") == "4");
  CHECK(json.at("libtorch").at("nccl").is_null());
}

TEST_CASE("sconce-info ends its table with the GPU verdict and includes the verdict in its JSON") {
  const auto [verdict, name] =
      GENERATE(table<GpuStatus, std::string>({{GpuStatus::usable, "usable"},
                                              {GpuStatus::no_driver, "no_driver"},
                                              {GpuStatus::cpu_build, "cpu_build"},
                                              {GpuStatus::cuda_not_loaded, "cuda_not_loaded"},
                                              {GpuStatus::hidden, "hidden"},
                                              {GpuStatus::driver_too_old, "driver_too_old"},
                                              {GpuStatus::unusable, "unusable"}}));
  Machine machine = a_machine();
  auto& [torch, driver, visible_devices, device_order] = machine.environment;
  torch.num_gpus = verdict == GpuStatus::usable ? 1 : 0;
  if (verdict == GpuStatus::no_driver) driver = {.error = "cannot load libnvidia-ml.so.1"};
  if (verdict == GpuStatus::cpu_build) torch.built_with_cuda = false;
  if (verdict == GpuStatus::cuda_not_loaded) torch.cuda_loaded = false;
  if (verdict == GpuStatus::hidden) visible_devices = "-1\n2";
  if (verdict == GpuStatus::driver_too_old) driver.cuda = "12.9";
  const std::string text = gpu_status_text(machine.environment);
  std::ostringstream table;
  table << machine;
  CHECK_THAT(table.str(), Catch::Matchers::EndsWith("\nverdict       " + text + "\n"));
  const auto json = nlohmann::json::parse(to_json(machine));
  CHECK(json.at("verdict").at("text") == text);
  CHECK(json.at("verdict").at("name") == name);
}

TEST_CASE("sconce-info reports its own build and the machine it runs on") {
  const auto machine = apps::this_machine();
  const auto number = [](int part) { return std::to_string(part); };
  CHECK(machine.sconce == number(SCONCE_VERSION_MAJOR) + "." + number(SCONCE_VERSION_MINOR) + "." +
                              number(SCONCE_VERSION_PATCH) + SCONCE_VERSION_SUFFIX);
  CHECK(machine.standard.starts_with("C++2"));
  CHECK(machine.cores > 0);
  CHECK(machine.environment.torch.cuda_loaded == !machine.cuda_runtime.empty());
}
