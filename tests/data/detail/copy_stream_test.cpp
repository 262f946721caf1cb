#include "sconce/data/detail/copy_stream.hpp"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "support/require_gpu.hpp"

using sconce::data::detail::CopyStream;

TEST_CASE("a copy to a device without streams completes immediately") {
  torch::Tensor here = torch::arange(3);
  const torch::Tensor same = here;
  CHECK_FALSE(CopyStream(torch::kCPU).copy({&here}));
  CHECK(here.is_same(same));
  CHECK_FALSE(CopyStream(torch::kMeta).copy({&here}));
  CHECK(here.is_meta());
}

TEST_CASE("on a GPU, the current stream waits for copies made on the copy stream", "[gpu]") {
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

TEST_CASE(
    "on a GPU, the memory of a freed copy is reused only after work that reads the copy has "
    "finished",
    "[gpu]") {
  sconce::test::require_gpu();
  const CopyStream copies(sconce::gpu());
  auto sum = torch::zeros({}, sconce::gpu());
  for (int turn = 0; turn < 20; ++turn) {
    torch::Tensor batch = torch::full({1 << 20}, turn);
    copies.copy({&batch})();
    sum += batch.sum();
  }
  CHECK(sum.item<float>() == 190 << 20);
}

TEST_CASE("on a GPU, the current stream waits for tensors created on another stream", "[gpu]") {
  sconce::test::require_gpu();
  const CopyStream copies(sconce::gpu());
  const auto other =
      c10::impl::VirtualGuardImpl(torch::kCUDA).getStreamFromGlobalPool(sconce::gpu());
  for (int turn = 0; turn < 20; ++turn) {
    torch::Tensor made = torch::full({1 << 22}, turn, sconce::gpu());
    const auto wait = copies.copy({&made});
    const c10::StreamGuard guard(other);
    wait();
    CHECK(made.eq(turn).all().item<bool>());
  }
}

TEST_CASE("on a GPU, copies to a device without an index go to the current GPU", "[gpu]") {
  sconce::test::require_gpu();
  const auto last = sconce::gpu(sconce::num_gpus() - 1);
  const c10::DeviceGuard guard(last);
  const CopyStream copies(torch::kCUDA);
  torch::Tensor batch = torch::ones({4});
  copies.copy({&batch})();
  CHECK(batch.device() == last);
}
