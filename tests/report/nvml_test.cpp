#include "report/nvml.hpp"

#include "catch.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::ask_nvml;

TEST_CASE("ask_nvml reports the driver's versions and the properties of each GPU") {
  const auto driver = ask_nvml(SCONCE_NVML_WHOLE);
  CHECK(driver.error.empty());
  CHECK(driver.version == "470.1");
  CHECK(driver.cuda == "11.4");
  REQUIRE(driver.gpus.size() == 2);
  const auto& gpu = driver.gpus[1];
  CHECK(gpu.name == "Made-up GPU \xff");
  CHECK(gpu.uuid == "GPU-1");
  CHECK(gpu.bus_id == "00000000:25:00.0");
  CHECK(gpu.memory_total == int64_t{8} << 30);
  CHECK(gpu.memory_used == int64_t{1} << 30);
  CHECK_FALSE(gpu.utilization);
  CHECK(driver.gpus[0].utilization == 42);
  CHECK_FALSE(gpu.index);
}

TEST_CASE("ask_nvml reports why NVML is missing or cannot be initialized") {
  const auto missing = ask_nvml("libsconce-has-no-such-library.so.1");
  CHECK_THAT(missing.error, ContainsSubstring("libsconce-has-no-such-library.so.1"));
  CHECK(missing.gpus.empty());
  const auto failing = ask_nvml(SCONCE_NVML_FAILING);
  CHECK(failing.error == "NVML answers: Driver Not Loaded");
  CHECK(failing.gpus.empty());
  CHECK_THAT(ask_nvml("libz.so.1").error, ContainsSubstring("lacks nvmlInit_v2"));
}

TEST_CASE("ask_nvml leaves a field empty if NVML lacks the function that reports it") {
  const auto driver = ask_nvml(SCONCE_NVML_LACKING);
  CHECK(driver.error.empty());
  CHECK(driver.version.empty());
  CHECK(driver.cuda.empty());
  REQUIRE(driver.gpus.size() == 2);
  CHECK(driver.gpus[0].name.empty());
  CHECK_FALSE(driver.gpus[0].memory_total);
}
