#include "sconce/seed_everything.hpp"

#include <torch/torch.h>

#include <cstdlib>

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "support/require_gpu.hpp"

using sconce::seed_everything;

TEST_CASE("seed_everything with the same seed reproduces the same random numbers") {
  CHECK(seed_everything(7) == 7);
  const auto numbers = torch::rand({4});
  const int of_c = std::rand();
  seed_everything(8);
  CHECK_FALSE(torch::rand({4}).equal(numbers));
  seed_everything(7);
  CHECK(torch::rand({4}).equal(numbers));
  CHECK(std::rand() == of_c);
}

TEST_CASE("seed_everything produces the same random numbers as torch::manual_seed") {
  torch::manual_seed(3);
  const auto numbers = torch::rand({4});
  seed_everything(3);
  CHECK(torch::rand({4}).equal(numbers));
}

TEST_CASE("seed_everything seeds every GPU", "[gpu]") {
  sconce::test::require_gpu();
  for (const auto device : sconce::try_all_gpus()) {
    seed_everything(7);
    const auto numbers = torch::rand({4}, device);
    CHECK_FALSE(torch::rand({4}, device).equal(numbers));
    seed_everything(7);
    CHECK(torch::rand({4}, device).equal(numbers));
  }
}
