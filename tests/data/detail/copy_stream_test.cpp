#include "sconce/data/detail/copy_stream.hpp"

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "support/require_gpu.hpp"

using sconce::data::detail::CopyStream;

TEST_CASE("to a device without streams a copy is there at once") {
  torch::Tensor here = torch::arange(3);
  const torch::Tensor same = here;
  CHECK_FALSE(CopyStream(torch::kCPU).copy({&here}));
  CHECK(here.is_same(same));
  CHECK_FALSE(CopyStream(torch::kMeta).copy({&here}));
  CHECK(here.is_meta());
}

TEST_CASE("the current stream of a GPU waits for the copies", "[gpu]") {
  sconce::test::require_gpu();
  const CopyStream copies(sconce::gpu());
  for (int turn = 0; turn < 20; ++turn) {
    torch::Tensor large = torch::full({1 << 22}, turn);
    torch::Tensor there = torch::full({4}, turn, sconce::gpu());
    const auto* data = there.data_ptr();
    const auto wait = copies.copy({&large, &there});
    REQUIRE(wait);
    wait();
    CHECK(large.device() == sconce::gpu());
    CHECK(there.data_ptr() == data);
    CHECK(large.eq(turn).all().item<bool>());
  }
}
