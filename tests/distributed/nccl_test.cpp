#include "distributed/nccl.hpp"

#include <cstdlib>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "catch.hpp"
#include "sconce/distributed/process_group.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;

TEST_CASE("NCCL is available if and only if sconce is built with the CUDA headers") {
  CHECK(sconce::distributed::is_nccl_available() == SCONCE_HAS_CUDA_SOURCES);
}

TEST_CASE("make_nccl throws without a GPU") {
  if (sconce::num_gpus() > 0) SKIP("needs a machine without a GPU");
  const auto store = c10::make_intrusive<c10d::HashStore>();
  CHECK_THROWS_WITH(sconce::distributed::make_nccl(store, 0, 1, std::chrono::seconds(3)),
                    ContainsSubstring("sconce::distributed::make_nccl: expected"));
}

TEST_CASE("every NCCL collective runs with a single rank", "[gpu]") {
  sconce::test::require_gpu();
  const auto group =
      sconce::distributed::ProcessGroup::init({.backend = "nccl",
                                               .init_method = "tcp://127.0.0.1:29500",
                                               .timeout = std::chrono::seconds(30),
                                               .world_size = 1,
                                               .rank = 0});
  CHECK(group.backend() == "nccl");
  const auto values = torch::tensor({1.F, 2.F}, torch::kCUDA);
  const auto tensor = values.clone();
  group.all_reduce(tensor);
  group.broadcast(tensor, 0);
  CHECK(torch::equal(tensor, values));
  CHECK(torch::equal(group.all_gather(tensor).at(0), values));
  CHECK(torch::equal(group.reduce_scatter({tensor}), values));
  group.barrier();
}
