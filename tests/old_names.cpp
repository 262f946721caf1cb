// Every include path and name of 0.2 that has moved since.
#include "all.hpp"  // made by cmake/SconceOldNames.cmake

#include <concepts>

#include "catch.hpp"

TEST_CASE("the names of 0.2 are those of today") {
  STATIC_CHECK(std::same_as<sconce::cuda::CapturedStep, sconce::CapturedStep>);
  STATIC_CHECK(std::same_as<sconce::cuda::CapturedStepOptions, sconce::CapturedStepOptions>);
  STATIC_CHECK(std::same_as<sconce::cuda::OtherShape, sconce::OtherShape>);
  CHECK(sconce::cuda::is_nccl_available() == sconce::distributed::is_nccl_available());
  CHECK_THROWS_AS(sconce::data::read_idx("no such file"), c10::Error);
}
